"""By what Spark's own reader filters: by listed columns, and by no other, whatever is set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contract.request import FileSource, SqlSource
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.engine.source.open_source import open_source
from spark_jobs.engine.source.pinned_tables import PinnedTables
from spark_jobs.spi.connector import Connector
from tests.conformance.folder_harness import FolderHarness

_CARELESS = {
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources": "parquet,orc",
    "spark.sql.orc.filterPushdown": "true",
}


@pytest.fixture
def connector(spark: SparkSession, tmp_path: Path) -> Iterator[Connector]:
    (tmp_path / "warehouse").mkdir()
    harness = FolderHarness(spark, tmp_path / "warehouse", partitioned=False)
    with fixed_settings(spark, _CARELESS), fixed_settings(spark, meaningful_settings("UTC")):
        yield harness.connector


@pytest.fixture
def landed(tmp_path: Path) -> Path:
    columns = {
        "i": pa.array([1, 9], pa.int32()),
        "s": ["a", "b"],
        "f": [1.0, math.nan],
        "ts": pa.array([0, 1], pa.timestamp("ms", "UTC")),
        "st": [{"x": 1.0}, {"x": math.nan}],
    }
    pq.write_table(pa.table(columns), tmp_path / "landed.parquet")
    return tmp_path / "landed.parquet"


def pushed(frame: DataFrame) -> str:
    plan = str(frame._jdf.queryExecution().executedPlan())
    return plan.partition("PushedFilters: [")[2].partition("]")[0]


@pytest.mark.slow
def test_a_file_source_hands_over_what_is_listed(
    spark: SparkSession, connector: Connector, landed: Path
) -> None:
    source = FileSource("s", str(landed), "parquet")
    frame = open_source(spark, source, connector, PinnedTables()).frame

    filtered = frame.where(
        "i > 5 AND s >= 'b' AND f > 5 AND st.x > 5 AND ts < TIMESTAMP'1970-01-01 00:00:00.0015Z'"
    )

    assert {"GreaterThan(i,5)", "GreaterThanOrEqual(s,b)"} <= set(pushed(filtered).split(", "))
    assert not any(f"({name}" in pushed(filtered) for name in ("f", "ts", "st"))
    assert filtered.select("i").collect() == [(9,)]


@pytest.mark.slow
def test_a_query_over_a_path_hands_over_nothing(
    spark: SparkSession, connector: Connector, landed: Path
) -> None:
    query = f"SELECT i FROM parquet.`{landed}` WHERE f > 5 AND st.x > 5"
    frame = open_source(spark, SqlSource("s", query), connector, PinnedTables()).frame

    assert frame.collect() == [(9,)]


@pytest.mark.slow
def test_a_query_over_sources_still_hands_over(
    spark: SparkSession, connector: Connector, landed: Path
) -> None:
    open_source(spark, FileSource("files", str(landed), "parquet"), connector, PinnedTables())
    query = SqlSource(
        "s", "SELECT i FROM files WHERE i > 5 AND f > (SELECT max(x) FROM VALUES (5) v(x))"
    )
    frame = open_source(spark, query, connector, PinnedTables()).frame

    assert "GreaterThan(i,5)" in pushed(frame)
    assert frame.collect() == [(9,)]


@pytest.mark.slow
def test_long_decimals_are_decided_by_rows(
    spark: SparkSession, connector: Connector, tmp_path: Path
) -> None:
    """Polars 1.44 mixes the bounds of their pages up."""
    numbers = [Decimal(each) for each in range(-100, 100)]
    rows = pa.table(
        {
            "short": pa.array(numbers, pa.decimal128(18, 0)),
            "long": pa.array(numbers, pa.decimal128(19, 0)),
        }
    )
    frame = polars.from_arrow(rows)
    assert isinstance(frame, polars.DataFrame)
    frame.write_parquet(tmp_path / "polars.parquet", statistics=True, data_page_size=64)

    source = FileSource("s", str(tmp_path / "polars.parquet"), "parquet")
    filtered = open_source(spark, source, connector, PinnedTables()).frame.where(
        "short < 0 AND long = -99"
    )

    assert "LessThan(short" in pushed(filtered)
    assert "(long" not in pushed(filtered)
    assert filtered.count() == 1
