"""Former states and changes of tables as sources: what operators take, and what they refuse."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_provider_merge.operators._shared.source_parameters import to_sources
from airflow_provider_merge.operators.clauses import when_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import (
    cdc_source,
    changes_source,
    deduplicate,
    sql_source,
    table_source,
)
from spark_jobs.contract.request import TableName, TableSource
from spark_jobs.contract.table_versions import ChangeRange, TableVersion
from spark_jobs.errors import JobError

TABLE = TableName("db", "t")


@pytest.mark.parametrize(
    ("source", "at"),
    [
        (table_source("db.t"), None),
        (table_source("db.t", snapshot=7), TableVersion(snapshot=7)),
        (table_source("db.t", snapshot="7"), TableVersion(snapshot=7)),
        (table_source("db.t", tag="kept"), TableVersion(tag="kept")),
        (table_source("db.t", as_of="2024-01-31"), TableVersion(as_of="2024-01-31")),
        (
            table_source("db.t", as_of=datetime(2024, 1, 31, tzinfo=UTC)),  # type: ignore[arg-type]
            TableVersion(as_of="2024-01-31T00:00:00+00:00"),
        ),
        (table_source("db.t", as_of="to_be.rendered"), TableVersion(as_of="2000-01-01")),
    ],
)
def test_former_states(source: dict[str, Any], at: TableVersion | None) -> None:
    assert to_sources(source, name="s") == (TableSource("s", TABLE, at),)


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        (changes_source("db.t", start="all"), ChangeRange("all")),
        (
            changes_source("db.t", start="now", net="True", on_gap="full"),
            ChangeRange("now", net=True, on_gap="full"),
        ),
        (changes_source("db.t", start=7), ChangeRange("at", TableVersion(snapshot=7))),
        (
            changes_source("db.t", start={"tag": "2024-01-31"}),
            ChangeRange("at", TableVersion(tag="2024-01-31")),
        ),
        (
            changes_source("db.t", from_snapshot=0, to_snapshot="9"),
            ChangeRange(from_snapshot=0, to_snapshot=9),
        ),
    ],
)
def test_changes(source: dict[str, Any], changes: ChangeRange) -> None:
    assert to_sources(source, name="s") == (TableSource("s", TABLE, changes=changes),)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (table_source("db.t", snapshot=1, tag="a"), "source.tag: snapshot and tag both tell"),
        (table_source("db.t", snapshot="a"), "source.snapshot: 'a' is not the id of a snapshot"),
        (table_source("db.t", as_of="noon"), "source.as_of: 'noon' is not a time"),
        (table_source("db.t", tag=" "), "source.tag: ' ' is not a name"),
        ({"kind": "table", "table": "db.t", "of": 1}, "source.of: unknown field"),
        (changes_source("db.t"), "source.start: either start or from_snapshot"),
        (changes_source("db.t", start="all", from_snapshot=1), "source.from_snapshot: either"),
        (changes_source("db.t", start="2024-01-31"), "source.start: '2024-01-31' is not where"),
        (changes_source("db.t", start={"at": 1}), "source.start: .* is no former state"),
        (changes_source("db.t", start="all", on_gap="skip"), "source.on_gap: 'skip' is not one"),
        (changes_source("db.t", start="all", to_snapshot=3), "source.to_snapshot: goes with"),
        (changes_source("db.t", from_snapshot=3, on_gap="full"), "source.on_gap: a range between"),
        (
            sql_source("SELECT * FROM c", sources={"c": changes_source("db.t", start="x")}),
            "source.sources.c.start: 'x' is not where",
        ),
    ],
)
def test_refused_with_the_place(source: dict[str, Any], message: str) -> None:
    with pytest.raises(JobError, match=message) as caught:
        to_sources(source)
    assert caught.value.code.name == "REQUEST_INVALID"


@pytest.mark.parametrize("table", ["db.t", "`DB`.`t`", "`db`.`t$branch_main`", "lake.db.t"])
@pytest.mark.parametrize("conn_id", [None, "lake"])
def test_a_table_does_not_follow_itself(table: str, conn_id: str | None) -> None:
    more = {} if conn_id is None else {"conn_id": conn_id}
    source = changes_source(table, start="all", net=True, **more)
    for wrapped in (
        source,
        deduplicate(source, by=["id"]),
        cdc_source(source, keys=["id"]),
    ):
        with pytest.raises(JobError, match="reads only what is new, but that is of the target it"):
            _merge(wrapped)
    _merge(changes_source("db.u", start="all", **more))
    _merge(changes_source(table, from_snapshot=1, to_snapshot=2, **more))
    _merge(changes_source(table, start="all", conn_id="other"))


def _merge(source: dict[str, Any]) -> None:
    MergeIntoOperator(
        task_id="merge",
        target="db.t",
        catalog_conn_id="lake",
        source=source,
        on="t.id = s.id",
        when=[when_matched().delete()],
    )
