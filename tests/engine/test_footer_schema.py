"""The schema of one local parquet file is the one that Spark infers, or is left to Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.contract.request import FileSource
from spark_jobs.engine.source.footer_schema import footer_schema

AT = dt.datetime(2024, 1, 2, 3, 4, 5)  # noqa: DTZ001 - of TIMESTAMP_NTZ
KNOWN = {
    "bool": pa.array([True]),
    "i8": pa.array([1], pa.int8()),
    "i16": pa.array([1], pa.int16()),
    "i32": pa.array([1], pa.int32()),
    "i64": pa.array([1], pa.int64()),
    "f32": pa.array([1.0], pa.float32()),
    "f64": pa.array([1.0], pa.float64()),
    "dec9": pa.array([Decimal("1.25")], pa.decimal128(9, 2)),
    "dec18": pa.array([Decimal("1.25")], pa.decimal128(18, 2)),
    "dec38": pa.array([Decimal("1.25")], pa.decimal128(38, 10)),
    "text": pa.array(["x"]),
    "large": pa.array(["x"], pa.large_string()),
    "dictionary": pa.array(["x"]).dictionary_encode(),
    "bytes": pa.array([b"x"]),
    "day": pa.array([dt.date(2024, 1, 2)]),
    "ms": pa.array([AT], pa.timestamp("ms")),
    "us": pa.array([AT], pa.timestamp("us")),
    "us_utc": pa.array([AT], pa.timestamp("us", "UTC")),
    "us_zone": pa.array([AT], pa.timestamp("us", "Europe/Paris")),
    "date64": pa.array([dt.date(2024, 1, 2)], pa.date64()),
}
LEFT_TO_SPARK = {
    "u32": pa.array([1], pa.uint32()),
    "u64": pa.array([1], pa.uint64()),
    "ns": pa.array([AT], pa.timestamp("ns")),
    "list": pa.array([[1]]),
    "struct": pa.array([{"x": 1}]),
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "time": pa.array([dt.time(1)], pa.time64("us")),
    "nothing": pa.array([None], pa.null()),
    "fixed": pa.array([b"abcd"], pa.binary(4)),
}


def source(path, **options):
    return FileSource("s", str(path), "parquet", **options)


def write(path, columns, **options):
    pq.write_table(pa.table(columns), path, **options)
    return path


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("options", [{}, {"version": "1.0"}, {"store_decimal_as_integer": True}])
def test_the_type_is_sparks(spark, tmp_path, name, options):
    path = write(tmp_path / "a.parquet", {name: KNOWN[name]}, **options)
    assert footer_schema(spark, source(path)) == spark.read.parquet(str(path)).schema


def test_all_columns_in_their_order(spark, tmp_path):
    path = write(tmp_path / "a.parquet", KNOWN)
    assert footer_schema(spark, source(f"file://{path}")) == spark.read.parquet(str(path)).schema


def test_required_columns_may_be_null(spark, tmp_path):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"id": [1]}, schema=schema), tmp_path / "a.parquet")
    found = footer_schema(spark, source(tmp_path / "a.parquet"))
    assert found == spark.read.parquet(str(tmp_path / "a.parquet")).schema
    assert found["id"].nullable


@pytest.mark.parametrize("name", LEFT_TO_SPARK)
def test_other_types_are_left_to_spark(spark, tmp_path, name):
    path = write(tmp_path / "a.parquet", {"id": [1], name: LEFT_TO_SPARK[name]})
    assert footer_schema(spark, source(path)) is None


def test_int96_is_left_to_spark(spark, tmp_path):
    columns = {"at": KNOWN["us"]}
    path = write(tmp_path / "a.parquet", columns, use_deprecated_int96_timestamps=True)
    assert footer_schema(spark, source(path)) is None


def test_a_file_of_spark_is_left_to_spark(spark, tmp_path):
    spark.sql("SELECT 1 AS id").coalesce(1).write.parquet(str(tmp_path / "folder"))
    (path,) = (tmp_path / "folder").glob("*.parquet")
    assert footer_schema(spark, source(path)) is None


@pytest.mark.parametrize(
    "name", ["_hidden.parquet", ".hidden.parquet", "a,b.parquet", "[a].parquet"]
)
def test_names_that_mean_something_to_spark(spark, tmp_path, name):
    path = write(tmp_path / name, {"id": [1]})
    assert footer_schema(spark, source(path)) is None


def test_what_is_no_single_file_is_left_to_spark(spark, tmp_path):
    write(tmp_path / "a.parquet", {"id": [1]})
    (tmp_path / "b.parquet").write_text("no parquet")
    for each in (tmp_path, tmp_path / "b.parquet", tmp_path / "none", "a.parquet", "s3://b/a"):
        assert footer_schema(spark, source(each)) is None


def test_options_are_left_to_spark(spark, tmp_path):
    path = write(tmp_path / "a.parquet", {"id": [1]})
    assert footer_schema(spark, source(path, options={"mergeSchema": "true"})) is None


def test_names_that_differ_in_case_only(spark, tmp_path):
    path = write(tmp_path / "a.parquet", {"id": [1], "ID": [2]})
    assert footer_schema(spark, source(path)) is None


def test_a_path_of_another_default_file_system(spark, tmp_path):
    path = write(tmp_path / "a.parquet", {"id": [1]})
    spark.conf.set("fs.defaultFS", "hdfs://name:9000")
    try:
        assert footer_schema(spark, source(path)) is None
    finally:
        spark.conf.unset("fs.defaultFS")
