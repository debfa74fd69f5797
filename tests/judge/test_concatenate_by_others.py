"""Files of other writers are put together, and other readers agree on what came out."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.datafiles.concatenate import InputFile
from tests.datafiles.files_to_concatenate import LARGE, chunks, groups, put_together
from tests.judge.test_splice_by_others import ROWS_OF_ALL_TYPES, WRITERS

pytestmark = pytest.mark.slow

# Every row group of the sources is larger; rows that are encoded anew come in groups of a few.
_SMALL = 2_000


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    return spark.sql(ROWS_OF_ALL_TYPES).coalesce(1)


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("size", [_SMALL, LARGE], ids=["copied", "encoded"])
def test_spark_reads_the_same_rows_from_files_of_its_own(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, size: int
) -> None:
    sources = []
    for number, options in enumerate(WRITERS.values()):
        frame.write.options(**options).parquet(str(tmp_path / str(number)))
        (path,) = (tmp_path / str(number)).glob("*.parquet")
        sources.append(path)
    schema = pq.read_schema(sources[0]).remove_metadata()
    deleted = np.array([0, 17, 3999], np.int64)
    inputs = [InputFile(str(path), 4000, np.empty(0, np.int64)) for path in sources]
    inputs.append(InputFile(str(sources[0]), 4000, deleted))
    target = tmp_path / "new.parquet"

    put_together(target, inputs, size, schema)

    stored = [chunk for path in sources for chunk in chunks(path)]
    if size == _SMALL:
        assert chunks(target)[: len(stored)] == stored
    else:
        assert groups(target) == [4000 * len(inputs) - 3]
    expected = spark.read.parquet(str(sources[0])).collect()
    rows = [*expected * len(sources), *(r for i, r in enumerate(expected) if i not in deleted)]
    for vectorised in ("true", "false"):
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorised)
        found = spark.read.parquet(str(target)).collect()
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
        assert found == rows
    filtered = spark.read.parquet(str(target)).where("flag = 'flag 2' AND price = 49").count()
    assert filtered == sum(row["flag"] == "flag 2" and row["price"] == 49 for row in rows)
    (counted,) = duckdb.sql(f"SELECT count(*) FROM '{target}' WHERE id = 17").fetchall()
    assert counted == (len(sources),)
