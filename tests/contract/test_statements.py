"""What the objects of a request refuse when they are made, in a DAG file or out of JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.partition_keys import PartitionKey
from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest, TableName
from spark_jobs.contract.statements import (
    Assignment,
    ColumnSpec,
    CreateTableSpec,
    DeleteAction,
    DeleteSpec,
    InsertAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
    UpdateAllAction,
    UpdateSpec,
)
from spark_jobs.errors import ErrorCode, RequestError

DELETE = MergeCase("matched", DeleteAction())
COLUMNS = (ColumnSpec("id", "INT"), ColumnSpec("Day", "DATE"))


def merge(*cases: MergeCase, **changes: Any) -> MergeSpec:
    names = {"source": "s", "on": "t.id = s.id", "target_alias": "t", "source_alias": "s"}
    return MergeSpec(cases=cases or (DELETE,), **{**names, **changes})


def request(**changes: Any) -> JobRequest:
    fields: dict[str, Any] = {
        "operation_id": "op",
        "target": TableName("db", "t"),
        "catalog": CatalogSpec("paimon", "/w"),
        "statement": merge(),
        "sources": (FileSource("s", "/data", "parquet"),),
    }
    return JobRequest(**{**fields, **changes})


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "delete without an alias": (lambda: DeleteSpec(" "), "target_alias: "),
    "delete with a blank where": (lambda: DeleteSpec("t", " "), "where: "),
    "update without assignments": (lambda: UpdateSpec("t", ()), "assignments: "),
    "update with a blank where": (
        lambda: UpdateSpec("t", (Assignment("a", "1"),), ""),
        "where: ",
    ),
    "no clause": (lambda: dataclasses.replace(merge(), cases=()), "cases: "),
    "unreachable": (lambda: merge(DELETE, DELETE), "cases[1]: clause 2 (WHEN MATCHED)"),
    "unreachable after others": (
        lambda: merge(
            MergeCase("not_matched", InsertAllAction()),
            DELETE,
            MergeCase("not_matched", InsertAllAction(), "s.v > 1"),
        ),
        "cases[2]: clause 3 (WHEN NOT MATCHED) can never apply, because clause 1",
    ),
    "insert when matched": (
        lambda: MergeCase("matched", InsertAllAction()),
        "action: WHEN MATCHED takes UPDATE or UPDATE_ALL or DELETE, not INSERT_ALL",
    ),
    "delete when not matched": (lambda: MergeCase("not_matched", DeleteAction()), "action: "),
    "star by source": (
        lambda: MergeCase("not_matched_by_source", UpdateAllAction()),
        "action: WHEN NOT MATCHED BY SOURCE takes UPDATE or DELETE",
    ),
    "unknown when": (lambda: MergeCase("sometimes", DeleteAction()), "when: 'sometimes'"),
    "blank condition": (lambda: MergeCase("matched", DeleteAction(), "  "), "condition: "),
    "unknown cardinality": (lambda: merge(cardinality="lax"), "cardinality: 'lax'"),
    "blank on": (lambda: merge(on=" "), "on: "),
    "blank source": (lambda: merge(source=""), "source: "),
    "blank alias": (lambda: merge(target_alias=""), "target_alias: "),
    "one alias": (lambda: merge(target_alias="S"), "source_alias: "),
    "empty update": (lambda: UpdateAction(()), "assignments: "),
    "blank column": (lambda: Assignment("", "1"), "assignment: "),
    "blank value": (lambda: Assignment("v", " "), "assignment to v: "),
    "empty insert": (lambda: InsertAction(()), "values: "),
    "columns and values": (lambda: InsertAction(("1",), ("a", "b")), "columns: "),
    "no columns": (lambda: CreateTableSpec(()), "columns: "),
    "column twice": (lambda: CreateTableSpec((*COLUMNS, ColumnSpec("ID", "INT"))), "columns: id "),
    "partition key": (lambda: CreateTableSpec(COLUMNS, ("hour",)), "partition_keys: hour "),
    **{
        f"partition keys {keys}": (
            lambda keys=keys: CreateTableSpec(COLUMNS, keys),
            f"partition_keys: {problem}",
        )
        for keys, problem in {
            ("day(hour)",): "day(hour): hour is not a column of the table",
            ("day(day.x)",): "day(day.x): day.x is not a column of the table",
            ("weeks(day)",): "weeks(day): weeks is not a transform",
            ("void(id)",): "void(id): void is not a transform",
            ("day(4, day)",): "day(4, day): day takes one column",
            ("bucket(id)",): "bucket(id): bucket takes a number and a column",
            ("bucket(id, 4)",): "bucket(id, 4): bucket takes a number and a column",
            ("bucket(0, id)",): "bucket(0, id): 0 is not from 1 to 2147483647",
            ("truncate(-1, id)",): "truncate(-1, id): -1 is not from 1 to",
            ("bucket(2147483648, id)",): "bucket(2147483648, id): 2147483648 is not from 1",
            ("day", "id", "DAY"): "DAY: Day is already in Day",
            ("month(day)", "days(day)"): "days(day): Day is already in month(Day)",
            ("bucket(4, id)", "bucket(8, id)"): "bucket(8, id): id is already in bucket(4, id)",
        }.items()
    },
    "primary key twice": (
        lambda: CreateTableSpec(COLUMNS, (), ("id", "ID")),
        "primary_key: id occurs more than once",
    ),
    "table of another format": (
        lambda: request(statement=CreateTableSpec(COLUMNS, format="iceberg"), sources=()),
        "statement.format: the statement asks for a table of iceberg, but",
    ),
    "primary key": (lambda: CreateTableSpec(COLUMNS, (), ("key",)), "primary_key: key "),
    "blank name": (lambda: ColumnSpec(" ", "INT"), "name: "),
    "blank type": (lambda: ColumnSpec("id", ""), "type: of column id "),
    **{
        f"{field} {text!r}": (lambda field=field, text=text: merge(**{field: text}), f"{field}: ")
        for field in ("target_alias", "source_alias")
        for text in (" x", "x ", "`x`", "x\ny", "x\0", "\ud800", "x" * 241)
    },
    "alias of delete": (lambda: DeleteSpec("x\n"), "target_alias: 'x\\n' is not an identifier"),
    "alias of update": (
        lambda: UpdateSpec("`x`", (Assignment("a", "1"),)),
        "target_alias: '`x`' is not an identifier",
    ),
    "name of a new column": (lambda: ColumnSpec("`id`", "INT"), "name: '`id`' is not an ident"),
    **{
        f"assigned column {text!r}": (
            lambda text=text: Assignment(text, "1"),
            "assignment: column: ",
        )
        for text in (".", "a.", "a..b", "a`b", "``", "a\nb", "a. .b")
    },
    "inserted column": (lambda: InsertAction(("1",), ("a.",)), "columns[0]: 'a.' is not the name"),
    "relative warehouse": (lambda: CatalogSpec("paimon", "data/w"), "warehouse: 'data/w'"),
    "relative workspace": (
        lambda: CatalogSpec("paimon", "/w", workspace="tmp"),
        "workspace: 'tmp'",
    ),
    "empty workspace": (lambda: CatalogSpec("paimon", "/w", workspace=""), "workspace: ''"),
    "no connector": (lambda: CatalogSpec("", "/w"), "connector: "),
    "unknown source": (lambda: request(sources=()), "statement.source: 's'"),
    "source twice": (
        lambda: request(sources=(FileSource("s", "/a", "csv"), FileSource("S", "/b", "csv"))),
        "sources: ",
    ),
    "name of a source": (
        lambda: request(sources=(FileSource("s", "/a", "csv"), FileSource("a b", "/b", "csv"))),
        "sources: 'a b'",
    ),
    "operation id": (lambda: request(operation_id="../x"), "operation_id: "),
    "empty operation id": (lambda: request(operation_id=""), "operation_id: "),
    "operation id with newline": (lambda: request(operation_id="op\n"), "operation_id: "),
    "time zone": (lambda: JobOptions(session_time_zone=""), "session_time_zone: "),
    "file size": (lambda: JobOptions(target_file_size=0), "target_file_size: "),
    "isolation": (lambda: JobOptions(isolation="dirty"), "isolation: 'dirty' is not one of: "),
    "rewrite share": (lambda: JobOptions(rewrite_share=1.1), "rewrite_share: "),
    **{
        f"table {name!r}": (lambda name=name: TableName("db", name), "table: ")
        for name in ("", " ", ".", "..", "a/b", "a\\b", "a\0b", "a\nb", "..$branch_b", "\ud800")
    },
    "long table": (lambda: TableName("db", "ü" * 121), "table: "),
    "long database": (lambda: TableName("d" * 241, "t"), "database: "),
}


@pytest.mark.parametrize(("make", "problem"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_object_is_refused(make: Callable[[], Any], problem: str) -> None:
    with pytest.raises(RequestError) as caught:
        make()
    assert caught.value.code is ErrorCode.REQUEST_INVALID
    assert caught.value.message.startswith(problem)


def test_a_column_can_be_called_like_a_transform() -> None:
    spec = CreateTableSpec((*COLUMNS, ColumnSpec("year(day)", "INT")), ("Year(day)", "years(day)"))

    assert spec.partitioned_by() == (PartitionKey("year(day)"), PartitionKey("Day", "year"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("db.t", TableName("db", "t")),
        ("`my db`.`a.b`", TableName("my db", "a.b")),
        ("db.`it``s`", TableName("db", "it`s")),
        ("dw.Ünïcode", TableName("dw", "Ünïcode")),
    ],
)
def test_a_table_name_is_read(text: str, name: TableName) -> None:
    assert TableName.parse(text) == name
    catalog = TableName.parse(f"`my lake`.{text}")
    assert (catalog, catalog.catalog) == (name, "my lake")


@pytest.mark.parametrize(
    "text", ["", "t", "a.b.c.d", "a..c", ".t", "db.", "`db.t`", "`db.t", "db.`t", "a`b.c"]
)
def test_what_is_no_table_name_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        TableName.parse(text)


def test_clauses_of_other_kinds_do_not_hide_each_other() -> None:
    spec = merge(
        MergeCase("matched", UpdateAllAction(), "s.v > 1"),
        DELETE,
        MergeCase("not_matched", InsertAction(("s.id",), ("id",))),
        MergeCase("not_matched_by_source", UpdateAction((Assignment("v", "0"),))),
    )
    assert len(spec.cases) == 4


@pytest.mark.parametrize(
    ("other", "may_be"),
    [
        ("DB.T", True),
        ("db.t$branch_main", True),
        ("db.t$branch_b", False),
        ("db.t2", False),
        ("db2.t", False),
    ],
)
def test_names_that_may_mean_one_table(other: str, *, may_be: bool) -> None:
    one, two = TableName("db", "t"), TableName.parse(other)

    assert (one.may_be(two), two.may_be(one)) == (may_be, may_be)
