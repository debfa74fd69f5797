"""Spark gives Python few rows at once where columns have lists or maps, and only there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.engine.runtime.list_batches import list_batches
from spark_jobs.engine.runtime.session import fixed_settings
from spark_jobs.spi.arrow_tasks import map_in_arrow

_KEY = "spark.sql.execution.arrow.maxRecordsPerBatch"


@pytest.mark.parametrize(
    ("column", "asked", "largest"),
    [
        ("CAST(NULL AS ARRAY<INT>)", None, 250),
        ("map('a', id)", None, 250),
        ("struct(id AS a, array(id) AS b)", None, 250),
        ("array(id)", "7", 7),
        ("array(id)", "0", 250),
        ("CAST(id AS STRING)", None, 600),
        ("struct(id AS a)", "400", 400),
    ],
)
def test_rows_per_batch(spark: SparkSession, column: str, asked: str | None, largest: int) -> None:
    frame = spark.range(0, 600, 1, 1).selectExpr("id", f"{column} AS v")

    with fixed_settings(spark, {_KEY: asked}):
        before = spark.conf.get(_KEY)
        with list_batches(frame):
            rows = map_in_arrow(frame, _sizes, "rows long").collect()
        assert spark.conf.get(_KEY) == before

    assert max(each.rows for each in rows) == largest
    assert sum(each.rows for each in rows) == 600


def _sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})
