"""Other readers, with filters that they push down, find every row of files that were rewritten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.splice import splice
from tests.datafiles.test_float_bounds import NAN, WAYS, columns_of
from tests.datafiles.test_rewrite import delete
from tests.datafiles.test_table_types import PAIRS, changes_of, in_table, rewritten

pytestmark = pytest.mark.slow

LOCAL = pafs.LocalFileSystem()
# They choose dictionaries themselves, by which Spark's filters tell the zeros apart.
WITH_DICTIONARIES = ("new", "encoded")
PUSHDOWN = "spark.sql.parquet.filterPushdown"
# Values of a file, and conditions that at least one of them meets.
CASES = {
    "nan": (
        [1.0, NAN, 2.0, None],
        ("{} > 5", "{} = double('NaN')", "NOT ({} < 5)", "{} >= double('Infinity')"),
    ),
    "only nan": ([NAN, NAN], ("{} > 5", "{} = double('NaN')")),
    "negative zero": ([-0.0, -0.0], ("{} = 0", "{} >= 0", "NOT ({} < 0)")),
    "zero": ([0.0, 0.0], ("{} = -0.0D", "{} <= -0.0D")),
}


@contextmanager
def pushdown(spark: SparkSession, on: str) -> Iterator[None]:
    spark.conf.set(PUSHDOWN, on)
    try:
        yield
    finally:
        spark.conf.unset(PUSHDOWN)


def test_spark_finds_what_bounds_would_leave_out(spark: SparkSession, tmp_path: Path) -> None:
    paths = {}
    for name, (values, _) in CASES.items():
        rows = columns_of(values, pa.float64())
        source = tmp_path / f"{name}.parquet"
        pq.write_table(rows, source, use_dictionary=False, store_schema=False)
        for way in WAYS:
            left_out = ("updated", "deleted", *(WITH_DICTIONARIES if "zero" in name else ()))
            if way.__name__ not in left_out:
                paths[name, way.__name__] = tmp_path / f"{name}-{way.__name__}.parquet"
                way(source, paths[name, way.__name__], rows)
    for (name, way), path in paths.items():
        frame = spark.read.parquet(str(path))
        for condition in CASES[name][1]:
            for column in ("f", "s.x"):
                rows = frame.where(condition.format(column)).select("id")
                with pushdown(spark, "true"):
                    found = rows.count()
                with pushdown(spark, "false"):
                    wanted = rows.count()
                assert found == wanted > 0, (name, way, condition, column)


def test_a_file_of_spark_stays_good(spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT id, IF(id = 3, double('NaN'), CAST(id AS DOUBLE)) AS f FROM range(5)"
    spark.sql(query).coalesce(1).write.parquet(str(tmp_path / "written"))
    (source,) = (tmp_path / "written").glob("*.parquet")
    target = tmp_path / "target.parquet"

    splice(LOCAL, str(source), str(target), delete(0), Compression())

    with pushdown(spark, "true"):
        found = spark.read.parquet(str(target)).where("f > 100").collect()
    assert [row["id"] for row in found] == [3]
    assert duckdb.sql(f"SELECT id FROM '{target}' WHERE f > 100").fetchall() == [(3,)]
    missing = ds.dataset(target).to_table(filter=ds.field("f").is_null(nan_is_null=True))
    assert missing.column("id").to_pylist() == [3]


def test_spark_reads_values_of_the_types_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    for number, (name, pair) in enumerate(sorted(PAIRS.items())):
        source, target = tmp_path / f"{number}.parquet", tmp_path / f"target-{number}.parquet"
        before = pair.source(source)
        changes, value, _ = changes_of(pair)["update"]
        rewritten(splice, pair, source, target, changes, mapped=False)

        found = spark.read.parquet(str(target)).orderBy("id").toArrow().column("v")

        expected = [value(n, old) for n, old in enumerate(before.column("v").to_pylist())]
        assert in_table(found, pair.table).to_pylist() == expected, name
