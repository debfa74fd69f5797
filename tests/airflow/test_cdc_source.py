"""``cdc_source``: what it asks of the job, and wrong ones, found before Spark starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.lineage.columns import Relations
from airflow_provider_merge.operators.clauses import when_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import (
    cdc_source,
    changes_source,
    file_source,
    new_files_source,
    table_source,
)
from airflow_provider_merge.operators.statement_list import merge_into
from airflow_provider_merge.operators.statements import StatementsOperator
from spark_jobs.contract.cdc import CdcSource, OperationValues, SequenceColumn
from spark_jobs.contract.marks import mark_name
from spark_jobs.contract.request import FileSource, JobRequest, Origin
from spark_jobs.contract.statements import InsertAllAction, UpdateAllAction
from spark_jobs.errors import JobError
from tests.support.paimon_metadata import TableFiles

_FEED = table_source("shop.feed")
_VALUES = {"insert": ["c", "r"], "update": "u", "delete": "d"}
_JSON = file_source("/landing", "json")
_DEBEZIUM: dict[str, Any] = {"format": "debezium", "keys": ["id"], "sequence": ["source.lsn"]}


def _cdc(source: Any = _FEED, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"keys": ["id"], "sequence": ["lsn"], "values": _VALUES, **more}
    return cdc_source(source, **given)


def _merge(source: Any, **more: Any) -> MergeIntoOperator:
    return MergeIntoOperator(task_id="t", target="shop.orders", source=source, **more)


def test_a_merge_of_events_has_its_clauses() -> None:
    operator = _merge(_cdc())
    statement, (_, source) = operator.statement(), operator.request_sources()

    assert source == CdcSource(
        "merge_source",
        "merge_source_before_deduplication",
        ("id",),
        OperationValues(("c", "r"), ("u",), ("d",)),
        (SequenceColumn("lsn", "lsn"),),
    )
    assert statement.on == "t.`id` = s.`id`"
    told = [(each.when, each.action.kind, each.condition) for each in statement.cases]
    newer, gone = "(t.`lsn` IS NULL OR s.`lsn` > t.`lsn`)", "s.`_change_type` = 'delete'"
    assert told == [
        ("matched", "delete", f"{newer} AND {gone}"),
        ("matched", "update_all", newer),
        ("not_matched", "insert_all", f"NOT ({gone})"),
    ]
    operator.check_request()


def test_marked_rows_keep_their_order() -> None:
    statement = _merge(_cdc(deleted="gone", sequence={"at": "ts", "n": "offset"})).statement()
    kinds = [(each.when, each.action.kind) for each in statement.cases]
    assert kinds == [
        ("matched", "update"),
        ("matched", "update_all"),
        ("not_matched", "insert"),
        ("not_matched", "insert_all"),
    ]
    assert statement.cases[1].condition == (
        "(t.`at` IS NULL OR s.`at` > t.`at` OR (s.`at` = t.`at` AND "
        "(t.`n` IS NULL OR s.`n` > t.`n`)))"
    )


def test_own_clauses_are_taken() -> None:
    when = [{"when": "not_matched", "action": "insert_all"}]
    statement = _merge(_cdc(), on="t.id = s.id", when=when).statement()
    assert [type(each.action) for each in statement.cases] == [InsertAllAction]
    with pytest.raises(JobError, match="on: is given without when"):
        _merge(_cdc(), on="t.id = s.id")


def test_net_changes_say_themselves_what_they_mean() -> None:
    changes = changes_source("shop.bronze", start="all", net=True)
    source = _merge(cdc_source(changes, keys=["id"])).request_sources()[-1]
    assert isinstance(source, CdcSource)
    assert (source.operation, source.late, source.without) == (
        *("_change_type", "apply"),
        ("_snapshot_id",),
    )
    statement = _merge(cdc_source(changes, keys=["id"])).statement()
    assert statement.cases[1].condition is None
    assert isinstance(statement.cases[1].action, UpdateAllAction)


def test_files_of_documents_are_read_as_such_and_keep_their_mark() -> None:
    files = new_files_source("/landing", "json", start="all")
    source = cdc_source(files, **_DEBEZIUM, schema="id BIGINT, day DATE")
    operator = _merge(source)

    inner, events = operator.request_sources()

    assert isinstance(inner, FileSource)
    assert isinstance(events, CdcSource)
    assert (inner.schema, inner.missing) == (events.document_schema, "null")
    assert events.document_schema.startswith("before STRUCT<`id`: BIGINT, `day`: INT>, after")
    origin = Origin("dag", "run", "t")
    assert mark_name(origin, inner.name) == mark_name(origin, "merge_source")


def test_a_statement_of_a_list_and_the_request_survive_the_wire() -> None:
    listed = merge_into("follow", target="shop.orders", source=_cdc())
    StatementsOperator(task_id="t", statements=[listed])
    operator = _merge(_cdc(unchanged=["v"], deleted="gone"))
    from spark_jobs.contract.request import CatalogSpec, TableName

    request = JobRequest(
        *("op", TableName("shop", "orders"), CatalogSpec("paimon", "/w"), operator.statement()),
        sources=operator.request_sources(),
    )
    assert JobRequest.from_json(request.to_json()) == request


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (_cdc(keys=[]), "source: keys: is empty"),
        (_cdc(keys="id"), "source.keys: expected a list of columns"),
        (_cdc(sequence=[]), "sequence: is empty: nothing tells which event is the last"),
        (_cdc(sequence=["id"]), "sequence: id occurs more than once"),
        (_cdc(values={"insert": "c", "upsert": "u"}), "'upsert' is not one of: insert"),
        (_cdc(values={"insert": "c", "update": "c"}), "'c' occurs more than once"),
        (_cdc(values={"delete": True}), "source.values.delete: expected texts"),
        (cdc_source(_FEED, keys=["id"], sequence=["lsn"]), "source.values: is missing"),
        (_cdc(late="fail"), "'fail' is not one of: ignore, apply"),
        (_cdc(late=None), "source.late: is None"),
        (_cdc(format="avro"), "source.format: 'avro' is not one of: columns, debezium"),
        (
            cdc_source(_JSON, **{**_DEBEZIUM, "format": "Debezium"}, schema="id BIGINT"),
            "source.format: 'Debezium' is not one of: columns, debezium",
        ),
        (
            cdc_source(_JSON, **_DEBEZIUM, schema="id BIGINT, n INT", unchanged=["n"]),
            "unchanged: n is of the type INT, which cannot hold.*ARRAY<STRING>",
        ),
        (
            cdc_source(_JSON, **_DEBEZIUM, schema="id BIGINT, at DATE", deleted="at"),
            "deleted: at is a column of schema",
        ),
        (
            cdc_source(_JSON, **_DEBEZIUM, schema="id BIGINT", table="customers"),
            "source.table: 'customers' does not say which schema or database",
        ),
        (
            cdc_source(_JSON, **_DEBEZIUM, schema="id BIGINT", encodings={"id": "Decimal"}),
            "encodings.id: debezium documents have one way to write bigint.*Leave it out",
        ),
        (_cdc(schema="id INT"), "schema: is for documents"),
        ({**_cdc(), "order": 1}, "source.order: unknown field"),
        (_cdc(changes_source("a.b", start="all", net=True)), "is told by the changes"),
        (cdc_source(changes_source("a.b", start="all"), keys=["id"]), "NOT_SUPPORTED.*net=True"),
        (cdc_source(_JSON, **_DEBEZIUM), "schema: is missing"),
        (
            cdc_source(_JSON, **_DEBEZIUM, schema="id BIGINT, d DECIMAL(5, 2)"),
            r"encodings.d: is missing.*decimal.handling.mode",
        ),
        (
            cdc_source(_JSON, **_DEBEZIUM, schema="id BIGINT, at TIMESTAMP_NTZ"),
            r"encodings.at: is missing.*time.precision.mode",
        ),
        (
            cdc_source(_JSON, **_DEBEZIUM, schema="id BIGINT", encodings={"x": "Date"}),
            "encodings.x: is not a column",
        ),
        (
            cdc_source(_JSON, **_DEBEZIUM, schema="id BIGINT, i INTERVAL"),
            "NOT_SUPPORTED.*i: debezium documents do not tell values of the type interval",
        ),
        (
            cdc_source(_JSON, **{**_DEBEZIUM, "sequence": ["source.gtid"]}, schema="id BIGINT"),
            "'source.gtid' is nothing that orders debezium documents",
        ),
        (
            cdc_source(file_source("/l", "text"), **_DEBEZIUM, schema="id BIGINT"),
            "NOT_SUPPORTED.*read from JSON files, not from text",
        ),
        (
            cdc_source(file_source("/l", "json", schema="a INT"), **_DEBEZIUM, schema="id BIGINT"),
            "source.source.schema: is told by the documents",
        ),
    ],
)
def test_wrong_ones_are_named(source: Any, message: str) -> None:
    with pytest.raises(JobError, match=message):
        _merge(source)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"on": "t.id = s.id"}, "on: is given without when, but change events need neither"),
        ({"when": [when_matched().delete()]}, "when: is given without on"),
    ],
)
def test_half_a_statement_of_events_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(JobError, match=message):
        MergeIntoOperator(task_id="t", target="shop.orders", source=_cdc(), **given)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"sequence": ["scn"]}, "sequence: scn is not a column of the source"),
        ({"operation": "opp"}, "operation: opp is not a column of the source.*Did you mean op"),
        ({"keys": ["idd"]}, "keys: idd is not a column of the source"),
        ({"without": ["x"]}, "without: x is not a column of the source"),
        ({"sequence": {"scn": "lsn"}}, "sequence: shop.orders has no column scn.*late='apply'"),
        ({"deleted": "gone"}, "deleted: shop.orders has no column gone"),
        ({"without": ["day"]}, "needs a source column day"),
    ],
)
def test_metadata_tells_what_is_missing(warehouse: Path, more: Any, message: str) -> None:
    TableFiles(warehouse, "feed", more_columns={"lsn": "BIGINT", "op": "STRING"}).create()
    TableFiles(warehouse, "orders", more_columns={"lsn": "BIGINT"}).create()
    check = MetadataCheck(PaimonHook("paimon_default"), shares_files=True)
    fine, wrong = _merge(_cdc()), _merge(_cdc(**more))

    check.require_valid(fine.target_table(), fine.statement(), fine.request_sources())
    with pytest.raises(JobError, match=message):
        check.require_valid(wrong.target_table(), wrong.statement(), wrong.request_sources())


@pytest.mark.parametrize("field", ["keys", "sequence", "operation", "late", "path", "schema"])
def test_templates_stand_anywhere(field: str) -> None:
    later = "{{ params.x }}"
    files = file_source(later if field == "path" else "/landing", "parquet")
    _merge(_cdc(files, **({} if field in ("path", "schema") else {field: later})))
    _merge(_cdc(values={"insert": later, "delete": later}))
    _merge(cdc_source(_JSON, **_DEBEZIUM, schema=later, encodings={"d": later}, unchanged=["d"]))
    with pytest.raises(JobError, match=r"source\.format: decides"):
        _merge(_cdc(format=later))


def test_lineage_goes_through_it() -> None:
    sources = _merge(_cdc()).request_sources()
    queries = Relations(sources).queries()
    assert queries == {"merge_source": "SELECT * FROM merge_source_before_deduplication"}
