"""``Scd2Operator``: what its parameters mean, and what is wrong of them before anything starts."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from airflow_provider_merge.checks.derived_sources import check_versions
from airflow_provider_merge.checks.relations import Relation
from airflow_provider_merge.operators.scd2 import Scd2Operator
from airflow_provider_merge.operators.sources import (
    cdc_source,
    changes_source,
    deduplicate,
    file_source,
    new_files_source,
    sql_source,
)
from spark_jobs.contract.request import SqlSource
from spark_jobs.contract.scd2 import Scd2Source
from spark_jobs.errors import JobError

FILES = file_source("/landing/customers", "parquet")
EVENTS = cdc_source(FILES, keys=["id"], sequence=["lsn"], values={"delete": "d"})
CHANGES = changes_source("crm.customers", start="all", net=True)


def _operator(**given: Any) -> Scd2Operator:
    usual = {"target": "crm.versions", "source": FILES, "keys": ["id"], "as_of": "2026-01-31"}
    return Scd2Operator(task_id="versions", **{**usual, **given})


def _versions(**given: Any) -> Scd2Source:
    found = _operator(**given).request_sources()[-1]
    assert isinstance(found, Scd2Source)
    return found


def test_parameters_become_a_source_of_versions() -> None:
    operator = _operator(
        keys=["`id`", "Part"],
        tracked=["a"],
        effective="since",
        hard_deletes="new_record",
        deleted="is_gone",
        open_end=date(9999, 12, 31),
    )

    files, versions = operator.request_sources()

    assert isinstance(versions, Scd2Source)
    assert versions.source == files.name
    assert (versions.keys, versions.tracked) == (("id", "Part"), ("a",))
    assert (versions.late, versions.open_end) == ("insert_between", "9999-12-31")
    assert versions.finds_absent
    statement = operator.statement()
    assert (
        statement.on
        == "t.`id` = s.`id` AND t.`Part` = s.`Part` AND t.`valid_from` = s.`valid_from`"
    )
    assert [each.action.kind for each in statement.cases] == ["update", "delete", "insert_all"]


@pytest.mark.parametrize("source", [CHANGES, deduplicate(CHANGES, by=["id"])])
def test_changes_say_which_keys_are_gone(source: dict[str, Any]) -> None:
    found = _versions(source=source, hard_deletes="close")
    assert (found.delete_marker, found.finds_absent, found.late) == ("_change_type", False, "fail")


def test_templates_are_checked_around() -> None:
    operator = _operator(
        as_of="{{ data_interval_end }}", target="{{ params.t }}", current="{{ x }}"
    )
    assert [each.uri for each in operator.outlets] == []
    with pytest.raises(JobError, match="late: 'insert_between' is for rows"):
        _operator(as_of="{{ data_interval_end }}", late="insert_between")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"keys": "id"}, "keys: expected a list"),
        ({"keys": ["valid_to"]}, "valid_to: valid_to is named by keys, too"),
        ({"keys": ["id"], "tracked": ["ID"]}, "tracked: ID is named by keys, too"),
        ({"tracked": "most"}, "tracked: 'most' is neither"),
        ({"hard_deletes": "drop"}, "hard_deletes: 'drop' is not one of"),
        ({"hard_deletes": "new_record"}, "deleted: is missing"),
        ({"late": "insert_between"}, "NOT_SUPPORTED.*late: 'insert_between' is for rows"),
        ({"corrections": "keep"}, "corrections: 'keep' is not one of"),
        ({"open_end": "never"}, "open_end: 'never' is no date or time"),
        ({"as_of": "yesterday"}, "as_of: 'yesterday' is no date or time"),
        ({"isolation": "snapshot"}, "NOT_SUPPORTED.*isolation: with 'snapshot'"),
        ({"source": EVENTS}, "as_of: is told by change events themselves"),
        (
            {"source": deduplicate(EVENTS, by=["id"])},
            r"NOT_SUPPORTED.*source: change events \(cdc_source\) below another source",
        ),
        ({"target": "versions"}, "target: 'versions' is not a table name"),
        (
            {"source": new_files_source("/in", "csv", start="all"), "hard_deletes": "close"},
            "NOT_SUPPORTED.*hard_deletes: 'close' takes keys",
        ),
        (
            {"source": sql_source("DROP TABLE x", sources={"x": FILES}), "keys": []},
            "keys: is empty",
        ),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], told: str) -> None:
    with pytest.raises(JobError, match=told):
        _operator(**given)


_DEBEZIUM = {
    "format": "debezium",
    "keys": ["id"],
    "schema": "id BIGINT, changed_at TIMESTAMP",
    "sequence": {"lsn": "source.lsn", "happened": "source.ts_ms"},
}


def _of_events(**given: Any) -> Scd2Operator:
    """Versions of the events of a source, in which it may be given otherwise."""
    told: dict[str, Any] = {**_DEBEZIUM, **given.pop("events", {})}
    source = cdc_source(given.pop("inner", file_source("/in", "json")), **told)
    usual: dict[str, Any] = {"target": "crm.versions", "keys": ["id"], "effective": "happened"}
    usual |= {"source": source, "hard_deletes": "close"}
    return Scd2Operator(task_id="versions", **{**usual, **given})


def test_each_change_event_is_a_row() -> None:
    found = _of_events().request_sources()
    events, versions = found[-2:]
    assert isinstance(versions, Scd2Source)
    assert (versions.of_events, versions.source, versions.finds_absent) == (
        True,
        events.name,
        False,
    )
    assert (getattr(events, "net", None), versions.late) == (False, "insert_between")
    takes_over = _of_events(events={"unchanged": ["note"], "schema": "id BIGINT, note STRING"})
    of_versions = takes_over.request_sources()[-1]
    assert isinstance(of_versions, Scd2Source)
    assert of_versions.late == "fail"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"delete_marker": "gone"}, "delete_marker: is told by change events"),
        ({"effective": "lsn"}, "effective: lsn is source.lsn of debezium documents, which is no"),
        (
            {"effective": "changed_at"},
            "NOT_SUPPORTED.*effective: changed_at is a column of",
        ),
        ({"corrections": "ignore"}, "NOT_SUPPORTED.*corrections: 'ignore' would leave out"),
        ({"events": {"late": "apply"}}, "source.late: is for rows of which there is one"),
        ({"events": {"deleted": "gone"}}, "source.deleted: is for rows of which there is one"),
        (
            {
                "events": {"unchanged": ["note"], "schema": "id BIGINT, note STRING"},
                "late": "insert_between",
            },
            "NOT_SUPPORTED.*late: with 'insert_between', a late event",
        ),
    ],
)
def test_events_from_which_no_versions_follow_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(JobError, match=told):
        _of_events(**given)


def test_net_changes_are_no_events_with_times() -> None:
    changes = cdc_source(CHANGES, keys=["id"])
    with pytest.raises(JobError, match=r"NOT_SUPPORTED.*source: net changes have neither"):
        Scd2Operator(
            task_id="versions", target="crm.v", source=changes, keys=["id"], effective="since"
        )
    with pytest.raises(JobError, match="effective: is missing: nothing says when an event"):
        Scd2Operator(task_id="versions", target="crm.v", source=EVENTS, keys=["id"])


def test_a_row_that_is_never_deleted_may_tell_its_time() -> None:
    found = _of_events(effective="changed_at", hard_deletes="ignore").request_sources()[-1]
    assert isinstance(found, Scd2Source)
    assert found.effective == "changed_at"


def test_a_run_without_any_time_is_refused() -> None:
    with pytest.raises(JobError, match="effective: is missing, and so is as_of"):
        Scd2Operator(task_id="versions", target="crm.versions", source=FILES, keys=["id"])
    with pytest.raises(JobError, match="as_of: is missing: rows that are gone"):
        Scd2Operator(
            task_id="versions",
            target="crm.versions",
            source=FILES,
            keys=["id"],
            effective="since",
            hard_deletes="close",
        )


def test_columns_are_compared_before_spark() -> None:
    versions = _versions(effective="since", current="is_current", tracked=["city"])
    own = ("id", "city", "valid_from", "valid_to", "is_current")
    target = Relation("", "crm.versions", dict.fromkeys(own, ""))
    rows = Relation("", "the source", dict.fromkeys(("ID", "City", "since"), ""))
    check_versions(versions, target, rows)
    check_versions(versions, Relation("", "crm.versions", None), rows)

    less = Relation("", "crm.versions", dict.fromkeys(own[:4], ""))
    with pytest.raises(JobError, match="current: is_current is not a column of crm"):
        check_versions(versions, less, rows)
    with pytest.raises(JobError, match="source: city is not a column of the source"):
        check_versions(versions, target, Relation("", "the source", {"id": "", "since": ""}))
    with pytest.raises(JobError, match="effective: since is not a column of the source"):
        check_versions(versions, target, Relation("", "the source", {"id": "", "city": ""}))


def test_versions_are_of_their_own_statement() -> None:
    with pytest.raises(JobError, match="versions are for the MERGE of their own"):
        _other_statement()


def _other_statement() -> None:
    from dataclasses import replace

    from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
    from spark_jobs.contract.scd2_merge import scd2_merge

    versions = replace(_versions(), source="rows")
    statement = replace(scd2_merge(versions), on="TRUE")
    sources = (SqlSource("rows", "SELECT 1"), versions)
    JobRequest("x", TableName("a", "b"), CatalogSpec("paimon", "/w"), statement, sources)
