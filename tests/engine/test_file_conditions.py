"""What is known of a file without reading it: never wrong, and sharp where it can be."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any

import pytest
from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.engine.analysis.analyzer import analyze_filtered, target_frame
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.pruning.file_conditions import FileConditions, FileTruth
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.spi.tables import Column, ColumnRange, PlannedFile, TableHandle

TABLE = TableHandle(
    TableName("db", "t"),
    (
        Column("i", "INT"),
        Column("s", "STRING"),
        Column("f", "DOUBLE"),
        Column("b", "BOOLEAN"),
        Column("d", "DATE"),
        Column("m", "DECIMAL(6, 2)"),
        Column("st", "STRUCT<x: INT>"),
        Column("p", "STRING"),
        Column("q", "INT"),
        Column("ts", "TIMESTAMP"),
        Column("n", "TIMESTAMP_NTZ"),
    ),
    ("p", "q"),
    1,
)


def file(rows: int = 10, p: str | None = "a", q: int | None = 1, **ranges: Any) -> PlannedFile:
    """A file; ``i=(1, 5, 0)`` are minimum, maximum and NULL count of a column."""
    known = {name: ColumnRange(*each) for name, each in ranges.items()}
    return PlannedFile(0, "/f", {"p": p, "q": q}, rows, 100, known)


def truths(spark: SparkSession, where: str, files: list[PlannedFile]) -> list[FileTruth]:
    with fixed_settings(spark, meaningful_settings("UTC")):
        merge = analyze_filtered(spark, DeleteSpec("t", where), TABLE)
        moment = StatementTime(spark)
        conditions = FileConditions(
            spark, "t", TABLE.partition_keys, merge.target_types, files, moment
        )
        return conditions.truth(merge.read_set.on_predicates)


COLLATED = pytest.mark.skipif(spark_version < "4", reason="Spark 3.5 has no collations")

MAY, MUST, NEVER = FileTruth(True, False), FileTruth(True, True), FileTruth(False, False)

ONE_TO_FIVE = file(i=(1, 5, 0))


NOON = (dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 13, tzinfo=dt.UTC), 0)
LOCAL_NOON = tuple(each and each.replace(tzinfo=None) for each in NOON)

JANUARY = file(d=(dt.date(2024, 1, 1), dt.date(2024, 1, 31), 0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "planned", "expected"),
    [
        ("i = 3", ONE_TO_FIVE, MAY),
        ("i = 6", ONE_TO_FIVE, NEVER),
        ("6 = t.I", ONE_TO_FIVE, NEVER),
        ("i = 6L", ONE_TO_FIVE, NEVER),
        ("i = '6'", ONE_TO_FIVE, NEVER),
        ("i <= 5", ONE_TO_FIVE, MUST),
        ("i < 5", ONE_TO_FIVE, MAY),
        ("5 >= i", ONE_TO_FIVE, MUST),
        ("i < 1", ONE_TO_FIVE, NEVER),
        ("i > 0.5", ONE_TO_FIVE, MUST),
        ("i BETWEEN 1 AND 5L", ONE_TO_FIVE, MUST),
        ("i BETWEEN 7 AND 9", ONE_TO_FIVE, NEVER),
        ("i NOT BETWEEN 7 AND 9", ONE_TO_FIVE, MUST),
        ("NOT (i = 6)", ONE_TO_FIVE, MUST),
        ("i <> 3", ONE_TO_FIVE, MAY),
        ("i <> 3", file(i=(3, 3, 0)), NEVER),
        ("i <> 3", file(i=(3, 3, 1)), NEVER),
        ("i IN (6, 7)", ONE_TO_FIVE, NEVER),
        ("i IN (5, 7, NULL)", ONE_TO_FIVE, MAY),
        ("i IN (3, 7)", file(i=(3, 3, 0)), MUST),
        ("i NOT IN (6, 7)", ONE_TO_FIVE, MUST),
        ("i NOT IN (6, NULL)", ONE_TO_FIVE, NEVER),
        ("i = NULL", ONE_TO_FIVE, NEVER),
        ("i <=> NULL", ONE_TO_FIVE, NEVER),
        ("NOT i <=> NULL", ONE_TO_FIVE, MUST),
        ("i IS NULL", ONE_TO_FIVE, NEVER),
        ("i IS NOT NULL", ONE_TO_FIVE, MUST),
        # NULLs.
        ("i <= 5", file(i=(1, 5, 1)), MAY),
        ("i IS NULL", file(i=(1, 5, 1)), MAY),
        ("i IS NULL", file(i=(None, None, 10)), MUST),
        ("i <=> NULL", file(i=(None, None, 10)), MUST),
        ("i = 1", file(i=(None, None, 10)), NEVER),
        ("i <> 1", file(i=(None, None, 10)), NEVER),
        ("i <> 9 OR i IS NULL", file(i=(1, 5, 3)), MAY),
        # What is not known.
        ("i = 9", file(), MAY),
        ("i = 9", file(i=(None, None, 0)), MAY),
        ("i IS NULL", file(i=(None, None, 0)), NEVER),
        ("i <= 5", file(i=(1, 5, None)), MAY),
        ("i = 9", file(i=(1, None, 0)), MAY),
        ("i = 0", file(i=(1, None, 0)), NEVER),
        ("i > 9", file(i=(None, 5, None)), NEVER),
        ("i + 1 = 9", ONE_TO_FIVE, MAY),
        # What contradicts itself proves nothing.
        ("i > 0", file(i=(5, 1, 0)), MAY),
        ("i > 9", file(i=(5, 1, 0)), MAY),
        ("i > 9", file(i=(1, 5, 11)), MAY),
        ("i > 0", file(i=(1, 5, -1)), MAY),
        ("i IS NULL", file(i=(1, 5, -1)), MAY),
        ("i IS NOT NULL", file(i=(1, 5, 10)), MAY),
        # Another order than that of bounds.
        pytest.param("s <= 'b' COLLATE UTF8_LCASE", file(s=("B", "C", 0)), MAY, marks=COLLATED),
        pytest.param("s > 'b' COLLATE UTF8_LCASE", file(s=("C", "D", 0)), MAY, marks=COLLATED),
        pytest.param("s = 'B' COLLATE UTF8_LCASE", file(s=("a", "c", 0)), MAY, marks=COLLATED),
        pytest.param("s IN ('B' COLLATE UTF8_LCASE)", file(s=("a", "c", 0)), MAY, marks=COLLATED),
        pytest.param("p = 'A' COLLATE UTF8_LCASE", file(), MUST, marks=COLLATED),
        ("f = 9", file(f=(1.0, 5.0, 0)), MAY),
        ("f <= 9", file(f=(1.0, 5.0, 0)), MAY),
        ("st.x = 9", file(st=(1, 5, 0)), MAY),
        ("s = 9", file(s=("1", "5", 0)), MAY),
        ("s LIKE 'a%'", file(s=("b", "c", 0)), MAY),
        # Other types.
        ("s > 'b'", file(s=("c", "d", 0)), MUST),
        ("s = 'abc'", file(s=("abd", "abe", 0)), NEVER),
        ("b", file(b=(True, True, 0)), MUST),
        ("NOT b", file(b=(True, True, 0)), NEVER),
        ("b = false", file(b=(False, True, 0)), MAY),
        ("d < '2024-02-01'", JANUARY, MUST),
        (
            "d = TIMESTAMP'2025-01-01'",
            JANUARY,
            NEVER,
        ),
        ("ts >= TIMESTAMP'2024-01-01 12:00:00Z'", file(ts=NOON), MUST),
        ("ts > TIMESTAMP'2024-01-01 14:00:00+01:00'", file(ts=NOON), NEVER),
        ("ts >= DATE'2024-01-01'", file(ts=NOON), MUST),
        ("n < TIMESTAMP_NTZ'2024-01-01 12:00:00'", file(n=LOCAL_NOON), NEVER),
        # Where clocks change, a cast between the two kinds does not keep the order.
        ("n < TIMESTAMP'2023-01-01 12:00:00Z'", file(n=LOCAL_NOON), MAY),
        ("m >= 1", file(m=(Decimal("1.00"), Decimal("2.00"), 0)), MUST),
        ("m > 2.001", file(m=(Decimal("1.00"), Decimal("2.00"), 0)), NEVER),
        # Partitions: any expression.
        ("upper(p) = 'A'", file(), MUST),
        ("p LIKE 'b%'", file(), NEVER),
        ("p IS NULL", file(p=None), MUST),
        ("p IN (SELECT concat('a'))", file(), MUST),
        ("(p, q) IN (SELECT concat('a'), 2)", file(), NEVER),
        ("q % 2 = 1 AND length(p) = 1", file(), MUST),
        # Together.
        ("p = 'a' AND i <= 5", ONE_TO_FIVE, MUST),
        ("p = 'b' OR i <= 5", ONE_TO_FIVE, MUST),
        ("p = 'b' AND f = 1", ONE_TO_FIVE, NEVER),
        ("p = 'a' OR f = 1", ONE_TO_FIVE, MUST),
        ("NOT (p = 'b' OR i > 5)", ONE_TO_FIVE, MUST),
        ("i > 5 AND i IN (SELECT 6)", ONE_TO_FIVE, NEVER),
        ("i <= 5 AND i IN (SELECT 6)", ONE_TO_FIVE, MAY),
        ("i > (SELECT 5)", ONE_TO_FIVE, NEVER),
        ("TRUE", ONE_TO_FIVE, MUST),
        ("NULL", ONE_TO_FIVE, NEVER),
        ("1 = 2", ONE_TO_FIVE, NEVER),
        # What fails is left to the rows.
        ("1 / (q - 1) = 1", ONE_TO_FIVE, MAY),
    ],
)
def test_what_is_known(
    spark: SparkSession, where: str, planned: PlannedFile, expected: FileTruth
) -> None:
    assert truths(spark, where, [planned]) == [expected]


_ATOMS = (
    "i = 2",
    "2 < i",
    "i <= 2",
    "i <=> 2",
    "i <> 2",
    "i IN (1, 3)",
    "i IN (2, NULL)",
    "i IS NULL",
    "i BETWEEN 2 AND 3",
    "i = q",
    "i <=> NULL",
    "p = 'a'",
    "p <> 'a'",
    "p <=> NULL",
    "i + 0 > 1",
    "NULL",
)


@pytest.mark.slow
def test_never_wrong(spark: SparkSession) -> None:
    """Against Spark's own answers on the rows of small files, with exact and with wide bounds."""
    values = (None, 1, 2, 3)
    contents = [
        list(rows)
        for size in (1, 2, 3)
        for rows in itertools.combinations_with_replacement(values, size)
    ]
    files, kept = [], []
    for rows, p, slack in itertools.product(contents, ("a", None), (0, 1)):
        known = [value for value in rows if value is not None]
        bounds = (min(known) - slack, max(known) + slack) if known else (None, None)
        files.append(file(len(rows), p, 2, i=(*bounds, rows.count(None))))
        kept.append(rows)
    schema: StructType = target_frame(spark, TABLE).schema
    data = [
        (index, value, files[index].partition["p"])
        for index, rows in enumerate(kept)
        for value in rows
    ]
    frame = spark.createDataFrame(data, "f INT, i INT, p STRING").selectExpr("*", "2 AS q")
    assert schema["i"].dataType == frame.schema["i"].dataType
    pairs = list(itertools.combinations(_ATOMS, 2))
    for where in [
        *_ATOMS,
        *(f"NOT ({atom})" for atom in _ATOMS),
        *(f"({a}) AND NOT ({b})" for a, b in pairs[::7]),
        *(f"({a}) OR ({b})" for a, b in pairs[3::7]),
    ]:
        held: dict[int, list[bool]] = {}
        for index, holds in frame.selectExpr("f", f"coalesce({where}, false)").collect():
            held.setdefault(index, []).append(holds)
        for index, truth in enumerate(truths(spark, where, files)):
            assert truth.may or not any(held[index]), (where, kept[index], files[index])
            assert not truth.must or all(held[index]), (where, kept[index], files[index])


@pytest.mark.slow
def test_long_terms_are_left_to_the_rows(spark: SparkSession) -> None:
    """What stands beside them still decides."""
    files = [file(i=(1, 5, 0)), file(p="b", i=(1, 5, 0))]
    either = " OR ".join(f"(i = {number} AND s = 'x')" for number in range(10, 410))
    both = " AND ".join(f"i <> {number}" for number in range(10, 810))
    listed = f"i IN ({', '.join(map(str, range(10, 710)))})"

    for term in (either, both, listed):
        assert truths(spark, term, files) == [MAY, MAY]
        assert truths(spark, f"p = 'a' AND ({term})", files) == [MAY, NEVER]
        assert truths(spark, f"i > 5 AND ({term})", files) == [NEVER, NEVER]
    assert truths(spark, f"i <= 5 AND NOT ({listed})", files) == [MAY, MAY]
