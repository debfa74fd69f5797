"""Spark gives Python as many rows at once as suits their columns and what is known of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

from spark_jobs.engine.runtime.arrow_batches import arrow_batches
from spark_jobs.engine.runtime.session import fixed_settings
from spark_jobs.engine.write.task_batches import joined
from spark_jobs.spi.arrow_tasks import map_in_arrow
from tests.engine.changed_tables import ChangedTable

STATEMENTS = (
    "INSERT INTO db.t VALUES (1, 'a', 0.5D, map('a', 1), 1), (2, 'b', 0.5D, NULL, 2)",
    "UPDATE db.t SET v = 'c' WHERE id = 1",
    """MERGE INTO db.t AS t USING (SELECT id, v, f, m, 3 AS p FROM db.t) AS s ON t.id = s.id + 1
    WHEN MATCHED THEN UPDATE SET p = s.p WHEN NOT MATCHED THEN INSERT *""",
    "DELETE FROM db.t WHERE f > 0 AND m IS NULL",
)
_KEY = "spark.sql.execution.arrow.maxRecordsPerBatch"


@pytest.mark.parametrize(
    ("column", "asked", "largest"),
    [
        ("CAST(NULL AS ARRAY<INT>)", None, 250),
        ("map('a', id)", None, 250),
        ("struct(id AS a, array(id) AS b)", None, 250),
        ("array(id)", "7", 7),
        ("array(id)", "0", 250),
        ("struct(id AS a)", "400", 400),
        ("struct(id AS a)", None, 600),
        ("struct(CAST(id AS STRING) AS a)", None, 125),
        ("struct(CAST(id AS STRING) AS a)", "1000", 125),
        ("struct(CAST(CAST(id AS STRING) AS BINARY) AS a)", None, 600),
    ],
)
def test_rows_per_batch(spark: SparkSession, column: str, asked: str | None, largest: int) -> None:
    frame = spark.range(0, 600, 1, 1).selectExpr("id", f"{column} AS v")

    with fixed_settings(spark, {_KEY: asked}):
        before = spark.conf.get(_KEY)
        with arrow_batches(frame):
            rows = map_in_arrow(frame, _sizes, "rows long").collect()
        assert spark.conf.get(_KEY) == before

    assert max(each.rows for each in rows) == largest
    assert sum(each.rows for each in rows) == 600


@pytest.mark.parametrize(
    ("row_bytes", "largest"), [(0, 125), (10, 2_000), (999, 2_000), (1_001, 2_400)]
)
def test_rows_with_texts_by_the_size_that_is_known(
    spark: SparkSession, row_bytes: float, largest: int
) -> None:
    """Spark measures batches of rows that are large; those of which nothing is known are small."""
    frame = spark.range(0, 2_400, 1, 1).selectExpr("struct(id, CAST(id AS STRING) AS v) AS v")

    with arrow_batches(frame, row_bytes):
        measured = spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch", "64MB") == "64MB"
        rows = map_in_arrow(frame, _sizes, "rows long").collect()

    assert measured == (row_bytes > 1_000)
    assert max(each.rows for each in rows) == largest


def test_a_measure_that_somebody_set_stays(spark: SparkSession) -> None:
    frame = spark.range(0, 2_400, 1, 1).selectExpr("struct(id, repeat('x', 1000) AS v) AS v")
    key = "spark.sql.execution.arrow.maxBytesPerBatch"

    with fixed_settings(spark, {key: "100KB"}), arrow_batches(frame, 10):
        assert spark.conf.get(key) == "100KB"
        rows = map_in_arrow(frame, _sizes, "rows long").collect()

    if spark.version >= "4.1":
        assert max(each.rows for each in rows) <= 150


def test_small_batches_are_joined(spark: SparkSession) -> None:
    frame = spark.range(0, 2_400, 1, 1).selectExpr("id", "CAST(id AS STRING) AS v")

    with arrow_batches(frame):
        rows = map_in_arrow(frame, _joined_sizes, "rows long").collect()

    assert [each.rows for each in rows] == [2_400]


def test_batches_that_are_joined_have_the_same_rows() -> None:
    """Empty ones go, those with lists stay as they are, and many rows are not joined for ever."""
    texts = [pa.array([f"{n}-{i}" for i in range(n % 7)], pa.string()) for n in range(50)]
    structs = [pa.StructArray.from_arrays([each], ["v"]) for each in texts]
    flat = [
        pa.record_batch([pa.array(range(len(a)), pa.int64()), a, b], ["n", "a", "b"])
        for a, b in zip(texts, structs, strict=True)
    ]
    assert pa.Table.from_batches(joined(flat)) == pa.Table.from_batches(flat).combine_chunks()
    assert len(list(joined(flat))) == 1
    assert list(joined(flat[:1] * 3)) == []

    lists = [pa.record_batch([pa.array([[1], None])], ["v"])] * 3
    assert list(joined(lists)) == lists
    many = [pa.record_batch([pa.array(range(6_000))], ["v"])] * 7
    assert [each.num_rows for each in joined(many)] == [18_000, 18_000, 6_000]
    large = [pa.record_batch([pa.array(["x" * 5_000_000])], ["v"])] * 5
    assert [each.num_rows for each in joined(large)] == [2, 2, 1]


def _joined_sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return _sizes(joined(batches))


def _sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["bucketed", "iceberg-cow", "vectors"])
def test_every_action_of_statements_has_them(
    spark: SparkSession, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def noted(action: Any) -> Any:
        def run(frame: DataFrame, *arguments: Any) -> Any:
            if any(_gives_lists_to_python(frame._jdf.queryExecution().analyzed())):
                sizes.append(int(str(frame.sparkSession.conf.get(_KEY))))
            return action(frame, *arguments)

        return run

    for name in ("collect", "count"):
        monkeypatch.setattr(DataFrame, name, noted(getattr(DataFrame, name)))
    table = ChangedTable(spark, tmp_path, kind)
    table.make()

    for text in STATEMENTS:
        table.do(text)

    assert sizes
    assert max(sizes) <= 250


def _gives_lists_to_python(plan: Any) -> Iterator[bool]:
    """For each ``mapInArrow`` of an analysed plan: whether a column of its rows is a map."""
    if plan.getClass().getSimpleName() == "MapInArrow":
        yield "map<" in plan.child().schema().simpleString()
    children = plan.children()
    for index in range(children.size()):
        yield from _gives_lists_to_python(children.apply(index))
