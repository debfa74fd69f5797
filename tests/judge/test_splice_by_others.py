"""Files of other writers are spliced, and other readers agree on what came out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.datafiles.file_changes import FileChanges
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.splice import splice
from tests.datafiles.parquet_files import require_consistent
from tests.datafiles.test_rewrite import delete, update

pytestmark = pytest.mark.slow

LOCAL = pafs.LocalFileSystem()
ROWS = 4000

ROWS_OF_ALL_TYPES = """
SELECT CAST(id AS INT) AS id,
       id * 1000000007 AS big,
       CASE WHEN id % 7 > 0 THEN CAST(id % 50 AS DECIMAL(9, 2)) END AS price,
       CAST(id AS DECIMAL(18, 3)) AS cost,
       CAST(id % 9 - 4 AS DECIMAL(38, 4)) AS wide,
       CASE WHEN id % 3 > 0 THEN concat('flag ', id % 4) END AS flag,
       concat('a rather long text ', id) AS comment,
       date_add(DATE '1992-01-01', CAST(id % 2500 AS INT)) AS day,
       timestamp_micros(id * 1000001) AS instant,
       CAST(id % 100 AS DOUBLE) / 7 AS ratio,
       id % 2 = 0 AS even,
       CASE WHEN id % 5 > 0 THEN array(id, NULL, id + 1) END AS list,
       named_struct('a', id % 3, 'b', CAST(id AS STRING)) AS pair,
       map(CAST(id % 4 AS STRING), id) AS pairs
FROM range(4000)
"""

WRITERS: dict[str, dict[str, Any]] = {
    "version 1": {"compression": "zstd"},
    "version 2": {"compression": "snappy", "parquet.writer.version": "v2"},
    "small pages": {"parquet.page.size": 512, "parquet.page.row.count.limit": 100},
    "small groups": {"parquet.block.size": 40_000, "parquet.page.size": 1024},
    "without dictionaries": {"parquet.enable.dictionary": "false"},
    "small dictionaries": {"parquet.dictionary.page.size": 1024},
    "bloom filters": {"parquet.bloom.filter.enabled#flag": "true", "compression": "gzip"},
}


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    return spark.sql(ROWS_OF_ALL_TYPES).coalesce(1)


def changes() -> dict[str, FileChanges]:
    few = {5: "flag new", 6: None, 3999: "flag 1"}
    return {
        "updates": update("flag", few, pa.string()),
        "of a nested column": update("list", {7: [1, None], 8: None}, pa.list_(pa.int64())),
        "deletes": delete(0, 17, *range(1000, 1400), 3999),
    }


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("change", sorted(changes()))
@pytest.mark.parametrize("writer", sorted(WRITERS))
def test_spark_reads_the_same_rows_from_a_file_of_its_own(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, writer: str, change: str
) -> None:
    frame.write.options(**WRITERS[writer]).parquet(str(tmp_path / "written"))
    (source,) = (tmp_path / "written").glob("*.parquet")
    target = tmp_path / "target.parquet"

    splice(LOCAL, str(source), str(target), changes()[change], Compression())

    expected = by_id(spark.read.parquet(str(source)), changes()[change])
    for vectorised in ("true", "false"):
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorised)
        found = [row.asDict(recursive=True) for row in spark.read.parquet(str(target)).collect()]
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
        assert found == expected
    require_consistent(target)


def test_filters_that_use_dictionaries_and_statistics_find_all_rows(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    frame.write.options(compression="zstd").parquet(str(tmp_path / "written"))
    (source,) = (tmp_path / "written").glob("*.parquet")
    target = tmp_path / "target.parquet"

    both = changes()["deletes"]
    splice(LOCAL, str(source), str(target), both, Compression())
    again = tmp_path / "again.parquet"
    splice(LOCAL, str(target), str(again), update("flag", {2: "new"}, pa.string()), Compression())

    rows = spark.read.parquet(str(again))
    assert rows.where("flag = 'new'").count() == 1
    assert rows.where("flag = 'flag 2'").count() == sum(
        row["flag"] == "flag 2" for row in rows.collect()
    )
    assert rows.where("price = 49 AND id < 500").count() > 0
    assert rows.where("id = 3998").count() == 1
    assert rows.where("id = 3999").count() == 0


@pytest.mark.parametrize("change", ["updates", "deletes"])
@pytest.mark.parametrize("version", ["V1", "V2"])
def test_files_of_duckdb(tmp_path: Path, version: str, change: str) -> None:
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    query = (
        "SELECT i AS id, 'flag ' || i % 4 AS flag, (i % 50)::DECIMAL(15, 2) AS price, "
        "i * 1.5 AS ratio, [i, NULL] AS list FROM range(4000) t(i)"
    )
    duckdb.sql(
        f"COPY ({query}) TO '{source}' "
        f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 2048, PARQUET_VERSION {version})"
    )

    splice(LOCAL, str(source), str(target), changes()[change], Compression())

    before = pq.read_table(source).to_pylist()
    expected = applied(before, changes()[change])
    assert pq.read_table(target).to_pylist() == expected
    found = duckdb.sql(f"SELECT id, flag FROM '{target}'").fetchall()
    assert found == [(row["id"], row["flag"]) for row in expected]
    require_consistent(target)


def by_id(frame: DataFrame, changes: FileChanges) -> list[dict[str, Any]]:
    return applied([row.asDict(recursive=True) for row in frame.collect()], changes)


def applied(rows: list[dict[str, Any]], changes: FileChanges) -> list[dict[str, Any]]:
    for name, change in changes.columns.items():
        for place, value in zip(change.rows.tolist(), change.values.to_pylist(), strict=True):
            rows[changes.positions[place]][name] = value
    gone = set(changes.positions[changes.deleted].tolist())
    return [row for i, row in enumerate(rows) if i not in gone]
