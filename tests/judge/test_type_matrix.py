"""Every type in every role and format: oracle, this project, Java and pypaimon agree.

``type_matrix.py`` says what is supported. Each supported cell is in the tables and statements of
``test_supported_types`` or ``test_partition_values``, each other one in ``test_refused_cells``.
"""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest

from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import (
    Assignment,
    InsertAllAction,
    MergeCase,
    UpdateAction,
)
from tests.judge.judge import read_with_java
from tests.judge.jvm import JudgeError, server
from tests.judge.merging import merge_table, update
from tests.judge.type_matrix import (
    LIMITS,
    REFUSALS,
    Cell,
    Role,
    Rule,
    cells,
    refusal,
    refused,
    supported,
)
from tests.judge.type_tables import FIXED, Types, equal, is_in, literal, wrong_values
from tests.judge.type_values import KINDS, Kind, row_type
from tests.judge.types_page import page
from tests.judge.writer import JavaTable
from tests.support.judged_values import differences

PAGE = Path(__file__).resolve().parents[2] / "docs" / "types.md"
BLOBS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
ROOTS = {
    "CHARACTER": "CHAR",
    "INTEGER": "INT",
    "TIME_WITHOUT_TIME_ZONE": "TIME",
    "TIMESTAMP_WITHOUT_TIME_ZONE": "TIMESTAMP",
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": "TIMESTAMP_LTZ",
}


def assigned(columns) -> UpdateAction:
    return UpdateAction(tuple(Assignment(column, f"s.{column}") for column in columns))


INSERT = MergeCase("not_matched", InsertAllAction())
NOTED = MergeCase("matched", assigned(["note"]))


def check(warehouse, expected, kinds, file_format):
    """Both other readers find the rows; Java reads CHAR in ORC without trailing blanks."""
    assert not wrong_values(warehouse.read_with_python("d.t"), expected)
    found = read_with_java(warehouse.path, "d.t")
    if file_format == "orc":
        found, expected = (unpadded(kinds, rows) for rows in (found, expected))
    assert not wrong_values(found, expected)


def unpadded(kinds, rows):
    return [{name: stripped(kinds[name], value) for name, value in row.items()} for row in rows]


def stripped(kind, value):
    if value is None or isinstance(kind, str):
        return value.rstrip(" ") if value is not None and kind.startswith("CHAR") else value
    if kind["type"] == "ARRAY":
        return [stripped(kind["element"], each) for each in value]
    if kind["type"] == "MAP":
        pairs = value.items()
        return {stripped(kind["key"], k): stripped(kind["value"], v) for k, v in pairs}
    return {
        field["name"]: stripped(field["type"], value[field["name"]]) for field in kind["fields"]
    }


# Avro is read like ORC; test_avro_files.py has its types in every run.
AVRO = pytest.param("avro", marks=pytest.mark.extended)
ORC = pytest.param("orc", marks=pytest.mark.extended)


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("file_format", ["parquet", "orc", AVRO])
def test_supported_types(spark, warehouse, file_format):
    """Columns in conditions with constants, assigned, carried, nested, joined and inserted."""
    types = Types(file_format)
    for role in (Role.ASSIGNED, Role.SOURCE):
        assert supported(role, file_format) == types.flat, "the source has all columns"
    columns, rows, source = types.columns, types.target(), types.source()
    options = {"file.format": file_format}
    JavaTable.of_types(warehouse.path, "d.t", columns, (), options).append_rows(rows)
    kinds = columns | {"target": "BIGINT"}
    JavaTable.of_types(warehouse.path, "d.s", kinds, (), options).append_rows(source)
    check(warehouse, rows, columns, file_format)

    chosen = {kind.column: kind.values_in(file_format)[1::2] for kind in types.flat}
    conditions = [
        f"kind = '{kind.column}' AND {is_in(kind, chosen[kind.column])}"
        for kind in supported(Role.CONDITION, file_format)
    ]
    assert update(spark, warehouse, {"note": "'hit'"}, " OR ".join(conditions)).error is None
    for row in rows:
        if any(equal(row[row["kind"]], value) for value in chosen[row["kind"]]):
            row["note"] = "hit"
    check(warehouse, rows, columns, file_format)

    names = [name for name in columns if name not in FIXED]
    case = MergeCase("matched", assigned(names))
    assert merge_table(spark, warehouse, "d.s", [case], on="t.id = s.target").error is None
    sources = {row["target"]: row for row in source}
    for row in rows:
        if row["id"] in sources:
            row |= {name: sources[row["id"]][name] for name in names}
    check(warehouse, rows, columns, file_format)

    keys = [kind.column for kind in supported(Role.KEY, file_format)]
    others = sorted({kind.column for kind in types.flat} - {*keys})
    join = [f"t.{key} = s.{key}" for key in keys] + [f"s.kind <> '{each}'" for each in others]
    on = " AND ".join(join)
    assert merge_table(spark, warehouse, "d.s", [NOTED, INSERT], on=on).error is None
    joined = set()
    for new in source:
        for row in rows if new["kind"] in keys else ():
            if all(equal(row[key], new[key]) for key in keys):
                row["note"] = "new"
                joined.add(new["id"])
    assert joined
    rows += [{name: new[name] for name in columns} for new in source if new["id"] not in joined]
    check(warehouse, rows, columns, file_format)
    assert warehouse.checked_files("d.t")


# Partition values are in no file.
@pytest.mark.by_turns(3)
@pytest.mark.parametrize("file_format", ["parquet", ORC, AVRO])
def test_partition_values(spark, warehouse, file_format):
    """A table partitioned by all types that can be: conditions, joins, new and moved rows."""
    types = supported(Role.PARTITION, file_format)
    keys = {kind.column: kind.paimon for kind in types}

    def partition(number):
        """A value of each type; NULL for the last."""
        values = [kind.partitions or kind.values_in(file_format) for kind in types]
        count = max(map(len, values))
        found = [each[number % len(each)] if number < count else None for each in values]
        return dict(zip(keys, found, strict=True))

    def rows_of(numbers, first_id, note):
        return [{"id": first_id + i, "kind": "", "note": note} | partition(i) for i in numbers]

    last = max(len(kind.partitions or kind.values_in(file_format)) for kind in types)
    columns, options = FIXED | keys, {"file.format": file_format}
    table = JavaTable.of_types(warehouse.path, "d.t", columns, list(keys), options)
    rows = rows_of([*range(7), last], 0, "old")
    table.append_rows(rows)
    source = [
        row | {"target": row["id"] - 110 if row["id"] > 107 else None}
        for row in rows_of(range(4, last + 1), 100, "new")
    ]
    kinds = columns | {"target": "BIGINT"}
    JavaTable.of_types(warehouse.path, "d.s", kinds, (), options).append_rows(source)

    wanted = [rows[1], rows[-1]]
    where = " OR ".join(
        " AND ".join(f"{key} <=> {literal(keys[key], row[key])}" for key in keys) for row in wanted
    )
    assert update(spark, warehouse, {"note": "'hit'"}, where).error is None
    for row in wanted:
        row["note"] = "hit"
    check(warehouse, rows, columns, file_format)

    on = " AND ".join(f"t.{key} = s.{key}" for key in keys)
    assert merge_table(spark, warehouse, "d.s", [NOTED, INSERT], on=on).error is None
    for row in rows[4:7]:
        row["note"] = "new"
    rows += [{name: row[name] for name in columns} for row in source[3:]]
    check(warehouse, rows, columns, file_format)

    case = MergeCase("matched", assigned(keys))
    assert merge_table(spark, warehouse, "d.s", [case], on="t.id = s.target").error is None
    moved = {row["target"]: row for row in source}
    for row in rows:
        if row["id"] in moved:
            row |= {key: moved[row["id"]][key] for key in keys}
    check(warehouse, rows, columns, file_format)

    directories = set(warehouse.path.glob("d.db/t/**/bucket-0"))
    table.append_rows(rows_of(range(last + 1), 200, "Java's"))
    assert set(warehouse.path.glob("d.db/t/**/bucket-0")) == directories


def refused_table(warehouse, kind: Kind, role: Role, file_format: str, value=None) -> JavaTable:
    """A new table ``d.t`` with a column ``v`` in this role, and a row unless there is no value."""
    catalog = warehouse.path / str(uuid.uuid4())
    paimon = row_type(("f", kind.paimon)) if role is Role.NESTED else kind.paimon
    keys = ["v"] if role is Role.PARTITION else []
    options = {"file.format": file_format} | (BLOBS if kind.paimon == "BLOB" else {})
    table = JavaTable.of_types(catalog, "d.t", {"id": "BIGINT", "v": paimon}, keys, options)
    if value is not None:
        table.append_rows([{"id": 1, "v": {"f": value} if role is Role.NESTED else value}])
    return table


def statement(spark, warehouse, role: Role) -> JobResult:
    """A statement on ``d.t`` in which ``v`` has the role."""
    if role is Role.KEY:
        return merge_table(spark, warehouse, "d.t", [NOTHING], on="t.v = s.v")
    if role is Role.SOURCE:
        JavaTable.of_types(warehouse.path, "d.target", {"id": "BIGINT"})
        on = "t.id = s.id AND s.v IS NOT NULL"
        return merge_table(spark, warehouse, "d.t", [NOTHING], on=on, table="d.target")
    value = {"v": "NULL"} if role is Role.ASSIGNED else {"id": "7"}
    where = "v IS NOT NULL" if role is Role.CONDITION else "true"
    return update(spark, warehouse, value, where)


NOTHING = MergeCase("matched", UpdateAction((Assignment("id", "7"),)))


def assert_refused(result: JobResult, rule: Rule, line: str) -> None:
    assert result.error is not None
    assert result.error.code == rule.code
    wanted = rule.message.format(column=r"v(\.f)?", type=line.partition("(")[0])
    assert re.search(wanted, result.error.message), result.error.message
    assert result.error.remedy


@pytest.mark.parametrize("rule", REFUSALS, ids=lambda rule: rule.name)
def test_refused_cells(spark, warehouse, rule):
    found = refused(rule)
    assert found
    for cell in found:
        for kind in KINDS[cell.line]:
            check_refused(spark, warehouse, rule, cell, kind)


def check_refused(spark, warehouse, rule: Rule, cell: Cell, kind: Kind) -> None:
    value = kind.values_in(cell.file_format)[0] if kind.values else None
    if rule.by_paimon:
        with pytest.raises(JudgeError, match=rule.message):
            refused_table(warehouse, kind, cell.role, cell.file_format, value)
        return
    table = refused_table(warehouse, kind, cell.role, cell.file_format, value)
    before = sorted(table.warehouse.glob("d.db/t/snapshot/*"))

    result = statement(spark, type(warehouse)(table.warehouse), cell.role)

    assert_refused(result, rule, cell.line)
    assert sorted(table.warehouse.glob("d.db/t/snapshot/*")) == before


@pytest.mark.parametrize("rule", LIMITS, ids=lambda rule: rule.name)
def test_refused_values(spark, warehouse, rule):
    assert any(rule.applies(cell) and refusal(cell) is None for cell in cells())
    for paimon, value in rule.values:
        kind = Kind(paimon)
        if isinstance(value, str):
            table = refused_table(warehouse, kind, Role.PARTITION, "parquet")
            table.append_rows([{"id": 1, "v": None}])
            values = {"v": value}
        else:
            table = refused_table(warehouse, kind, Role.CARRIED, "orc", value)
            values = {"id": "7"}
        before = read_with_java(table.warehouse, "d.t")

        result = update(spark, type(warehouse)(table.warehouse), values, "true")

        assert_refused(result, rule, str(paimon))
        assert not differences(read_with_java(table.warehouse, "d.t"), before)


@pytest.mark.usefixtures("java")
def test_the_matrix_has_every_type_of_java():
    (answer,) = server("ReadPaimon").ask(mode="types")
    lines = {line.partition("(")[0].partition(" ")[0] for line in KINDS}

    assert {ROOTS.get(root, root) for root in answer["types"]} <= lines


def test_the_page_is_made_of_the_matrix():
    assert PAGE.read_text() == page()
