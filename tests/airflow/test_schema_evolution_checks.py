"""Statements with schema evolution, checked against metadata before Spark starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.operators._shared.source_parameters import to_named_sources
from airflow_provider_merge.operators.sources import file_source
from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.errors import JobError
from tests.support.paimon_metadata import TableFiles

CITY = {"id": 9, "name": "city", "type": "STRING"}
ZIP = {"id": 10, "name": "zip", "type": "INT"}
ORDERS = {"note": "STRING", "paid": "BOOLEAN", "address": {"type": "ROW", "fields": [CITY]}}
CHANGES = {"note": "STRING", "Extra": "INT", "address": {"type": "ROW", "fields": [CITY, ZIP]}}
# All tables also have the columns id and day.
TABLES: dict[str, dict[str, Any]] = {
    "orders": ORDERS,
    "changes": CHANGES,
    "kinds": {"rowkind": "STRING", "note": "STRING"},
    "keys": {"_KEY_id": "INT"},
    "engine": {"__MERGE_row": "INT"},
    "twice": {"extra": "INT", "EXTRA": "INT"},
}
ALL = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


def merge(clauses: str, source: str = "shop.changes", words: str = "WITH SCHEMA EVOLUTION ") -> str:
    return f"MERGE {words}INTO shop.orders AS t USING {source} AS s ON t.id = s.id {clauses}"


def insert(rest: str, words: str = "WITH SCHEMA EVOLUTION ") -> str:
    return f"INSERT {words}INTO shop.orders {rest}"


@pytest.fixture
def hook(warehouse: Path) -> PaimonHook:
    for name, columns in TABLES.items():
        TableFiles(warehouse, name, more_columns=columns).create()
    return PaimonHook("paimon_default")


def check(
    hook: PaimonHook, sql: str, sources: dict[str, Any] | None = None, **changes: Any
) -> None:
    named = to_named_sources(sources)
    parsed = parse_statement(sql, [each.name for each in named])
    statement = replace(parsed.statement, **changes)
    found = MetadataCheck(hook, shares_files=True)
    found.require_valid(parsed.target, statement, (*named, *parsed.sources))


# Each adds a column, or leaves one out: without schema evolution, it is refused.
EVOLVING = {
    "all columns": merge(ALL),
    "an assignment": merge("WHEN MATCHED THEN UPDATE SET extra = s.id + 1"),
    "an assignment with the alias": merge("WHEN MATCHED THEN UPDATE SET t.EXTRA = 1"),
    "a column list": merge("WHEN NOT MATCHED THEN INSERT (id, `extra`) VALUES (id, note)"),
    "what another clause adds": merge(
        "WHEN MATCHED THEN UPDATE SET extra = s.extra "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET extra = 0"
    ),
    "what * adds": merge(f"{ALL} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET extra = 0"),
    "values by position": merge(
        "WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT VALUES (1, NULL, 'x', TRUE, NULL, 6)"
    ),
    "a listed column": insert("(id, extra) SELECT id, Extra FROM shop.changes"),
    "the alias of a value": insert("(id, extra) SELECT id, id + 1 AS extra FROM shop.changes"),
}


@pytest.mark.parametrize("sql", EVOLVING.values(), ids=EVOLVING)
def test_what_evolution_allows(hook: PaimonHook, sql: str) -> None:
    check(hook, sql)
    with pytest.raises(JobError, match=r"^(COLUMN_NOT_FOUND|EXPRESSION_INVALID): "):
        check(hook, sql.replace("WITH SCHEMA EVOLUTION ", ""))


# What the job alone can decide, or what is free of reserved names.
ACCEPTED = {
    "a bare name of the source": merge("WHEN MATCHED AND extra > 1 THEN UPDATE SET extra = extra"),
    "a field": merge("WHEN MATCHED THEN UPDATE SET address.zip = s.address.zip"),
    "by name": insert("BY NAME SELECT Extra, id FROM shop.changes"),
    "by position": insert("SELECT *, 1, 2 FROM shop.changes"),
    "a reserved name that is not added": merge(
        "WHEN MATCHED THEN UPDATE SET note = s.rowkind", "shop.kinds"
    ),
    "a reserved name at a known position": insert("SELECT id, day, rowkind FROM shop.kinds"),
    "a reserved name for a listed column": insert("(id, note) SELECT id, rowkind FROM shop.kinds"),
    "one of two by case": merge("WHEN MATCHED THEN UPDATE SET note = s.id", "shop.twice"),
    "columns that are not known": merge(ALL, "(SELECT *, 1 AS x FROM shop.kinds)"),
    "a list of columns that are not known": insert("(id, any) SELECT id, 1 + 1 FROM shop.changes"),
    "columns twice": insert(
        "(id, note, extra) SELECT rowkind, rowkind, 1 AS extra FROM shop.kinds"
    ),
    "defaults": insert("BY NAME SELECT id, DEFAULT AS note FROM shop.changes"),
    "rows with a default": insert("VALUES (1, DATE '2026-01-31', DEFAULT, TRUE, NULL)"),
}


@pytest.mark.parametrize("sql", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_left_to_the_job(hook: PaimonHook, sql: str) -> None:
    check(hook, sql)


def widened(hook: PaimonHook, name: str, sql: str) -> None:
    """Check a statement with type widening."""
    found = parse_statement(sql, [])
    check = MetadataCheck(hook, shares_files=True)
    check.require_valid(found.target, found.statement, found.sources, widens=name == "widening")


@pytest.mark.parametrize("column", ["p", "b"], ids=["partition", "bucket"])
def test_keys_are_not_widened(hook: PaimonHook, warehouse: Path, column: str) -> None:
    keys = ("day", "p")
    options = {"bucket": "2", "bucket-key": "b"}
    TableFiles(warehouse, "keyed", partition_keys=keys, more_columns={"b": "INT"}).create(**options)
    TableFiles(warehouse, "wide", more_columns={column: "BIGINT NOT NULL"}).create()
    on_all = merge(ALL, "shop.wide").replace("shop.orders", "shop.keyed")
    by_name = insert("BY NAME SELECT * FROM shop.wide").replace("shop.orders", "shop.keyed")
    for sql in (on_all, by_name):
        widened(hook, "none", sql)
        with pytest.raises(JobError, match=rf"^NOT_SUPPORTED: .*{column} of shop\.keyed is a key"):
            widened(hook, "widening", sql)


def test_files_with_unknown_columns(hook: PaimonHook, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,x\n")
    sql = merge(
        "WHEN MATCHED THEN UPDATE SET anything = s.anything "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET anything = NULL",
        "files",
    )
    check(hook, sql, {"files": file_source(str(tmp_path / "a.csv"), "csv")})
    wrong = sql.replace("SET anything = NULL", "SET other = NULL")
    with pytest.raises(JobError, match=r"clause 2 .*: other is not a column of shop\.orders Rem"):
        check(hook, wrong, {"files": file_source(str(tmp_path / "a.csv"), "csv")})


def test_new_rows_can_be_sorted_by_new_columns(hook: PaimonHook) -> None:
    sql = insert("BY NAME SELECT * FROM shop.changes")
    check(hook, sql, order_by=("extra DESC",))
    with pytest.raises(JobError, match=r"order_by: more is not a column of shop\.orders or"):
        check(hook, sql, order_by=("more",))


REFUSED = {
    "a column of neither": (
        merge("WHEN MATCHED THEN UPDATE SET extr = s.extra"),
        (
            "COLUMN_NOT_FOUND: clause 1 (WHEN MATCHED): extr is not a column of shop.orders or "
            "shop.changes Remedy: Did you mean Extra?"
        ),
    ),
    "a column that no clause adds": (
        merge(
            "WHEN MATCHED THEN UPDATE SET note = s.note "
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET extra = 0"
        ),
        (
            "COLUMN_NOT_FOUND: clause 2 (WHEN NOT MATCHED BY SOURCE): extra is not a column of "
            "shop.orders Remedy: "
        ),
    ),
    "a new column of the target in an expression": (
        merge("WHEN MATCHED AND t.extra = 1 THEN UPDATE SET *"),
        "COLUMN_NOT_FOUND: condition of clause 1 (WHEN MATCHED): t.extra is not a column of ",
    ),
    "a listed column of another name": (
        insert("(id, more) SELECT id, extra FROM shop.changes"),
        "COLUMN_NOT_FOUND: INSERT: more is not a column of shop.orders",
    ),
    "a listed column at another position": (
        insert("(extra, id) SELECT id, extra FROM shop.changes"),
        "COLUMN_NOT_FOUND: INSERT: extra is not a column of shop.orders Remedy: ",
    ),
    "reserved, by *": (
        merge(ALL, "shop.kinds"),
        (
            "NOT_SUPPORTED: schema evolution: column rowkind of shop.kinds cannot be added: the "
            "table's format uses names like this itself Remedy: Rename rowkind in the source, or "
            "leave it out there."
        ),
    ),
    "reserved, by an assignment": (
        merge("WHEN MATCHED THEN UPDATE SET t.RowKind = 'x'", "shop.kinds"),
        "column rowkind of shop.kinds cannot be added",
    ),
    "reserved, by name": (
        insert("BY NAME SELECT * FROM shop.keys"),
        "column _KEY_id of the source cannot be added",
    ),
    "reserved, by a list": (
        insert("(id, _row_id) SELECT id, day AS _ROW_ID FROM shop.changes"),
        "column _ROW_ID of the source cannot be added",
    ),
    "reserved, by position": (
        insert("SELECT id, day, id AS x, id AS y, id AS z, id AS _level FROM shop.changes"),
        "column _level of the source cannot be added",
    ),
    "reserved by the engine": (
        merge(ALL, "shop.engine"),
        (
            "NOT_SUPPORTED: schema evolution: column __MERGE_row of shop.engine cannot be added: "
            "this provider uses names like this itself Remedy: Rename __MERGE_row in the source"
        ),
    ),
    "two of one name": (
        merge(ALL, "shop.twice"),
        (
            "AMBIGUOUS_REFERENCE: schema evolution: shop.twice has 2 columns extra, in any case "
            "Remedy: Give each column of the source a name of its own."
        ),
    ),
    "two of one name, by name": (
        insert("BY NAME SELECT id, day AS a, day AS A FROM shop.changes"),
        "AMBIGUOUS_REFERENCE: schema evolution: the source has 2 columns a, in any case",
    ),
}


@pytest.mark.parametrize(("sql", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(hook: PaimonHook, sql: str, message: str) -> None:
    with pytest.raises(JobError) as raised:
        check(hook, sql)
    assert message in str(raised.value)
