"""Whole files that Spark's reader cannot read are not called missing or damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_jobs.engine.runtime.failures import translated
from spark_jobs.errors import ErrorCode

pytestmark = pytest.mark.slow

_SPLIT = {"use_dictionary": False, "column_encoding": {"v": "BYTE_STREAM_SPLIT"}}


@pytest.mark.parametrize(
    ("options", "schema", "reason"),
    [
        ({"compression": "brotli"}, "v INT", "BrotliCodec"),
        (_SPLIT, "v INT", "BYTE_STREAM_SPLIT"),
        ({}, "v STRING", "INT32"),
    ],
    ids=["codec", "encoding", "type"],
)
def test_a_whole_file(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], schema: str, reason: str
) -> None:
    path = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"v": pa.array(range(100), pa.int32())}), path, **options)

    with pytest.raises((Py4JError, PySparkException)) as raised:
        spark.read.schema(schema).parquet(str(path)).collect()

    error = translated(raised.value)
    assert error.code is ErrorCode.NOT_SUPPORTED
    assert path.name in error.message
    assert reason in error.message


def test_a_damaged_file(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"v": pa.array(range(100), pa.int32())}), path, compression="gzip")
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)

    with pytest.raises((Py4JError, PySparkException)) as raised:
        spark.read.schema("v INT").parquet(str(path)).collect()

    assert translated(raised.value).code is ErrorCode.DATA_FILE_UNREADABLE
