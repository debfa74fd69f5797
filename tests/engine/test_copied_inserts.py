"""New rows of a MERGE that copies columns: stored as they are, and as Spark would store them."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.contract.statements import ColumnSpec
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.merge.located_plan import UnmatchedRows
from spark_jobs.engine.merge.physical_plan import Plan, PlanLimits
from tests.conformance.behaviour import (
    Behaviour,
    insert,
    insert_all,
    matched,
    not_matched,
    update,
)
from tests.conformance.changing import files_of
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.tables import EMPTY, NESTED, ORDERS, VALUES, SeedTable
from tests.engine.outcomes import outcome

pytestmark = pytest.mark.slow

_KINDS = ("append-cow", "append-dv", "row-tracking", "iceberg-cow", "iceberg-mor")


def _without(table: SeedTable, names: set[str]) -> SeedTable:
    """``table`` without some of its columns."""
    columns = tuple(each for each in table.columns if each.name not in names)
    files = tuple(
        tuple({each.name: row[each.name] for each in columns} for row in file)
        for file in table.files
    )
    return SeedTable(table.name, columns, files)


_LITERALS = {
    "BOOLEAN": ("true", "NULL"),
    "TINYINT": ("-128Y", "127Y"),
    "SMALLINT": ("NULL", "32767S"),
    "INT": ("-2147483648", "NULL"),
    "BIGINT": ("-9223372036854775808", "9223372036854775807"),
    "FLOAT": ("'NaN'", "'-0.0'"),
    "DOUBLE": ("'-0.0'", "'-Infinity'"),
    "DECIMAL(10, 2)": ("-99999999.99", "NULL"),
    "DECIMAL(38, 10)": ("1234567890123456789012345678.0123456789", "NULL"),
    "STRING": (r"'é\u0000\U0001f600'", "NULL"),
    "BINARY": ("X'00FF'", "NULL"),
    "DATE": ("'0001-01-01'", "'9999-12-31'"),
    "TIMESTAMP": ("'1883-11-18T12:00:00.000001Z'", "'2024-03-31T01:30:00.999999Z'"),
    "TIMESTAMP_NTZ": ("'2024-03-31T02:30:00.123456'", "NULL"),
}
# The field of a source is nullable, that of the table's last column is not.
_NESTED = _without(NESTED, {"deep"})
_INFO, _TAGS, _ATTRS = (each.type for each in _NESTED.columns[1:4])
_NESTED_SOURCE = f"""(
    SELECT
        CAST(id AS BIGINT) AS id, from_json(info, '{_INFO}') AS info,
        from_json(tags, '{_TAGS}') AS tags, from_json(attrs, '{_ATTRS}') AS attrs, p
    FROM VALUES
        (11, '{{"city": "c", "zip": 1}}', '["x", null]', '{{"k": 1}}', 'x'),
        (98, NULL, NULL, '{{"k": null}}', 'y'),
        (99, '{{"zip": 2}}', '[]', NULL, NULL)
        AS s(id, info, tags, attrs, p)
)"""


def _typed_source(table: SeedTable) -> str:
    """A row that the table has, and others, of the very types of its columns."""
    rows = [
        ", ".join(
            f"{id_}L"
            if each.name == "id"
            else f"CAST({_LITERALS[each.type][number % 2]} AS {each.type})"
            for each in table.columns
        )
        for number, id_ in enumerate((12, 901, 902))
    ]
    names = ", ".join(each.name for each in table.columns)
    return f"VALUES {', '.join(f'({each})' for each in rows)} AS s({names})"


@contextmanager
def _counted() -> Iterator[Counter[str]]:
    """How often new rows were stored as they are, and through Spark."""
    tally = Counter[str]()
    with mock.patch.multiple(
        UnmatchedRows,
        _stored=_told(UnmatchedRows._stored, tally, "copied"),
        _changes=_told(UnmatchedRows._changes, tally, "evaluated"),
    ):
        yield tally


def _told(function: Any, tally: Counter[str], name: str) -> Any:
    def counted(*arguments: Any) -> Any:
        tally[name] += 1
        return function(*arguments)

    return counted


def _same(
    behaviour: Behaviour,
    kind: str,
    make_table: MakeTable,
    plan: Plan,
    *,
    partitioned: bool = False,
    **options: Any,
) -> tuple[Any, Counter[str]]:
    """The outcome under ``plan``, which is that of a join, and how new rows were stored."""
    found = []
    for each in ("join", plan):
        harness = make_table(kind, behaviour.table, partitioned=partitioned)
        request = request_of(behaviour, harness, **options)
        limits = PlanLimits(plan=each)
        with _counted() as tally:
            result = Job(request, harness.spark, harness.open(), limits=limits).run()
        found.append(outcome(result, harness))
        shutil.rmtree(harness.warehouse)
    assert found[0] == found[1]
    return found[1], tally


@pytest.mark.by_turns(5)
@pytest.mark.parametrize("table", ["types", "nested"])
@pytest.mark.parametrize("kind", _KINDS)
def test_values_of_every_type_are_copied(kind: str, table: str, make_table: MakeTable) -> None:
    behaviour = Behaviour("", _NESTED_SOURCE, (not_matched(insert_all()),), table=_NESTED)
    if table == "types":
        # A text may be too long for a VARCHAR; Iceberg has no narrow integers.
        typed = _without(VALUES, {"code", "tiny", "small"} if "iceberg" in kind else {"code"})
        behaviour = Behaviour("", _typed_source(typed), behaviour.clauses, table=typed)

    (status, *_), tally = _same(behaviour, kind, make_table, "prepared")

    assert status == "committed"
    assert tally == Counter(copied=1)


# Fields that may not be NULL, behind structs that may: no row may get those of another.
_DEEP = SeedTable(
    "deep_inserts",
    (
        ColumnSpec("id", "BIGINT"),
        ColumnSpec("must", "STRUCT<n: INT NOT NULL, q: STRUCT<r: BIGINT NOT NULL, t: STRING>>"),
        ColumnSpec("times", "MAP<STRING, TIMESTAMP>"),
        ColumnSpec("items", "ARRAY<STRUCT<k: INT, v: DECIMAL(5, 2)>>"),
        ColumnSpec("p", "STRING"),
    ),
)
_DEEP_SOURCE = """(
    SELECT
        id,
        IF(id % 5 = 0, NULL, named_struct(
            'n', CAST(id AS INT),
            'q', IF(id % 7 = 0, NULL, named_struct('r', id, 't', IF(id % 3 = 0, NULL, 'x')))
        )) AS must,
        IF(id % 6 = 0, NULL, from_json(
            concat('{"a', id, '": "2024-07-01T00:00:00Z", "b": null}'), 'MAP<STRING, TIMESTAMP>'
        )) AS times,
        from_json(
            IF(id % 4 = 0, '[]', concat('[{"k": ', id, ', "v": 1.5}, null]')),
            'ARRAY<STRUCT<k: INT, v: DECIMAL(5, 2)>>'
        ) AS items,
        IF(id % 2 = 0, NULL, 'p') AS p
    FROM range(1, 17001)
)"""


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["append-dv", "iceberg-cow"])
def test_every_task_stores_its_own_rows(kind: str, make_table: MakeTable) -> None:
    behaviour = Behaviour("", _DEEP_SOURCE, (not_matched(insert_all()),), table=_DEEP)
    options: dict[str, Any] = {"session_time_zone": "America/St_Johns", "target_file_size": 2**20}

    (status, _, counts, _), tally = _same(behaviour, kind, make_table, "prepared", **options)

    assert (status, counts) == ("committed", (0, 17_000, 0, 0))
    assert tally == Counter(copied=1)


_SOURCE = (
    "VALUES (101L, 5, 'x', 1, {req}, 'a'), (9L, 6, NULL, 2, {req}, 'b'), "
    "(NULL, 7, 'n', NULL, 'z', NULL) AS s(id, k, v, n, req, p)"
)
_UPSERT = (matched(update(v="s.v")), not_matched(insert_all(), "s.id IS NOT NULL"))


@pytest.mark.parametrize(
    ("clauses", "partitioned", "expected"),
    [
        ((not_matched(insert_all()),), True, "evaluated"),
        (_UPSERT, False, "evaluated"),
        ((not_matched(insert(id="coalesce(s.id, 0L)", req="s.req")),), False, "evaluated"),
    ],
    ids=["partitioned", "condition", "expression"],
)
def test_spark_evaluates_what_is_no_copy(
    clauses: Any, partitioned: bool, expected: str, make_table: MakeTable
) -> None:
    source = _SOURCE.format(req="'y'").replace("(NULL, 7", "(8L, 7")
    behaviour = Behaviour("", source, clauses)

    (status, *_), tally = _same(
        behaviour, "append-cow", make_table, "prepared", partitioned=partitioned
    )

    assert status == "committed"
    assert tally == Counter({expected: 1})


def test_a_column_is_copied_wherever_a_clause_says(make_table: MakeTable) -> None:
    source = _SOURCE.format(req="'y'").replace("(NULL, 7", "(8L, 7")
    swapped = insert(p="s.v", req="s.req", v="s.v", n="s.k", k="s.n", id="s.id")

    (status, _, counts, _), tally = _same(
        Behaviour("", source, (not_matched(swapped),)), "append-cow", make_table, "prepared"
    )

    assert (status, counts) == ("committed", (0, 2, 0, 0))
    assert tally == Counter(copied=1)


@pytest.mark.parametrize("kind", ["append-dv", "iceberg-cow"])
def test_a_copy_is_checked_as_any_new_row(kind: str, make_table: MakeTable) -> None:
    source = _SOURCE.format(req="CAST(NULL AS STRING)").replace("(NULL, 7", "(8L, 7")
    clauses = (matched(update(v="s.v", n="s.n")), not_matched(insert_all()))

    (status, error, *_), tally = _same(Behaviour("", source, clauses), kind, make_table, "located")

    assert (status, error[0]) == ("failed", "NOT_NULL_VIOLATION")
    assert "clause 2" in error[1]
    assert tally == Counter(copied=1)


@pytest.mark.parametrize("kind", ["append-dv", "iceberg-cow"])
def test_a_check_of_rows_reads_copied_ones(kind: str, make_table: MakeTable) -> None:
    harness = make_table(kind, ORDERS, partitioned=False)
    source = _SOURCE.format(req="'y'").replace("(NULL, 7", "(8L, 7")
    clauses = (matched(update(v="s.v")), not_matched(insert_all()))
    check = RowCheck("new", "SELECT new.id FROM changes WHERE operation = 'insert'")
    request = replace(
        request_of(Behaviour("", source, clauses), harness), guards=Guards(checks=(check,))
    )
    before = files_of(harness.warehouse)

    limits = PlanLimits(plan="prepared")
    with _counted() as tally:
        result = Job(request, harness.spark, harness.open(), limits=limits).run()

    assert result.error is not None
    assert result.error.code == "GUARD_FAILED"
    assert "check new: expected no rows, found 2 rows" in result.error.message
    assert tally == Counter(copied=1)
    assert files_of(harness.warehouse) == before


def test_the_first_rows_of_a_table_are_copied(make_table: MakeTable) -> None:
    values = "id, CAST(id AS INT) AS k, 'v' AS v, 1 AS n, 'r' AS req, 'p' AS p"
    source = f"(SELECT {values} FROM range(40000))"
    behaviour = Behaviour("", source, (not_matched(insert_all()),), table=EMPTY)

    (status, _, counts, rows), tally = _same(behaviour, "append-cow", make_table, "prepared")

    assert status == "committed"
    assert counts == (0, 40_000, 0, 0)
    assert len(rows) == 40_000
    assert tally == Counter(copied=1)
