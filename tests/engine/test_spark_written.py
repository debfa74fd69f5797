"""Sources that Spark's own writer stores come back as those that tasks store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from py4j.protocol import Py4JError
from pyarrow.types import is_floating
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.arrow_types import arrow_type
from spark_jobs.engine.analysis.char_columns import noted_lengths, with_noted_lengths
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.engine.source.materialized import MaterializedSource, materialize
from spark_jobs.engine.source.spark_written import spark_can_write
from spark_jobs.errors import CommitError, ErrorCode, JobError
from spark_jobs.spi.storage import WarehouseStorage

_SCRATCH = "_operations/scratch"
# NULL in a third of the rows, and values at the ends of their types.
_ROWS = """SELECT id,
    {null} true) AS bools, {null} CAST(id - 128 AS TINYINT)) AS tiny,
    {null} CAST(-32768 + id AS SMALLINT)) AS small, {null} CAST(-2147483648 + id AS INT)) AS ints,
    {null} 9223372036854775807 - id) AS longs, {null} CAST('NaN' AS FLOAT)) AS floats,
    {null} CAST('-0.0' AS DOUBLE) * id) AS doubles,
    {null} CAST(-99999.9999 AS DECIMAL(9, 4))) AS d9, {null} CAST(id AS DECIMAL(18, 0))) AS d18,
    {null} CAST('12345678901234567890123456789012345.678' AS DECIMAL(38, 3))) AS d38,
    {null} concat('ä\\u0000😀', id)) AS text, '' AS `a b`, {null} X'00FF') AS bytes,
    {null} CAST(X'FF' AS STRING)) AS damaged, CAST(NULL AS STRING) AS nothing, NULL AS void,
    {null} DATE'0001-01-01' + CAST(id AS INT)) AS days, DATE'9999-12-31' AS last_day,
    {null} TIMESTAMP'0001-01-01 00:00:00.000001') AS old, TIMESTAMP'1899-12-31 23:59:59' AS ltz,
    {null} TIMESTAMP_NTZ'1500-02-28 00:00:00.000001') AS ntz,
    {null} array(1, NULL, CAST(id AS INT))) AS arrays, array() AS `empty`,
    {null} map('k', CAST(NULL AS DECIMAL(20, 3)), '', 1.5BD)) AS maps,
    {null} named_struct('a.b', 1, 'day', DATE'1000-01-01', 'in', {null} array(map(id, 'x'))))
        ) AS structs,
    {null} array(named_struct('x', id), NULL)) AS deep
FROM range({rows})"""
_CARELESS = {
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.compression.codec": "gzip",
    "spark.sql.parquet.output.committer.class": (
        "org.apache.hadoop.mapreduce.lib.output.BindingPathOutputCommitter"
    ),
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol"
    ),
    "spark.sql.sources.outputCommitterClass": (
        "org.apache.hadoop.mapreduce.lib.output.BindingPathOutputCommitter"
    ),
    "spark.sql.files.maxRecordsPerFile": "2",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
    "mapreduce.outputcommitter.factory.class": "org.example.CloudFactory",
    "parquet.bloom.filter.enabled": "true",
    "parquet.compression.codec.zstd.level": "99",
    "parquet.crypto.factory.class": (
        "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
    ),
    "parquet.encryption.uniform.key": "key",
    "parquet.enable.dictionary": "true",
    "parquet.page.row.count.limit": "3",
    "parquet.writer.version": "PARQUET_2_0",
}


@pytest.fixture
def storage(tmp_path: Path) -> WarehouseStorage:
    root = tmp_path / "a %20 {warehouse} [1] #?"
    root.mkdir()
    return WarehouseStorage(pafs.LocalFileSystem(), str(root), f"file://{root}")


def materialized(frame: DataFrame, storage: WarehouseStorage) -> MaterializedSource:
    Lease(storage.filesystem, f"{storage.root}/{_SCRATCH}").take()
    return materialize(frame.sparkSession, frame, frame.columns, storage, _SCRATCH)


def rows(spark: SparkSession, count: int = 30) -> DataFrame:
    null = "if(id % 3 = 1, NULL,"
    return spark.sql(_ROWS.format(null=null, rows=f"0, {count}, 1, 3")).repartitionByRange(3, "id")


def exact(source: MaterializedSource) -> dict[str, pa.Array]:
    """The columns that the files have, as the driver reads them."""
    names = list(source.stored_names)
    values = source.values(names)
    assert values is not None
    kinds = [arrow_type(source.frame.schema[name].dataType) for name in names]
    arrays = [each.combine_chunks().cast(kind) for each, kind in zip(values, kinds, strict=True)]
    return {
        # Arrow finds no NaN equal to another one.
        name: array.view(f"int{array.type.bit_width}") if is_floating(array.type) else array
        for name, array in zip(names, arrays, strict=True)
    }


def texts(frame: DataFrame) -> list[str]:
    """The rows as Spark reads them; Python has no year 0."""
    return sorted(row[0] for row in frame.selectExpr("CAST(struct(*) AS STRING)").collect())


def stored(storage: WarehouseStorage) -> list[str]:
    files = (path for path in Path(storage.root).rglob("*") if path.is_file())
    return sorted(path.name for path in files if path.name != "lease")


@pytest.mark.parametrize("settings", [{}, _CARELESS], ids=["defaults", "a careless cluster"])
def test_values_are_those_that_tasks_store(
    spark: SparkSession, storage: WarehouseStorage, settings: Mapping[str, str]
) -> None:
    frame = rows(spark)
    with fixed_settings(spark, {**meaningful_settings("Asia/Kathmandu"), **settings}):
        expected = materialized(frame, replace(storage, uri=None))
        found = materialized(frame, storage)

        assert found.files.keys().isdisjoint(expected.files)
        assert len(found.files) == len(expected.files) == 3
        assert exact(found) == exact(expected)
        assert texts(found.frame) == texts(expected.frame)
        assert found.frame.schema == expected.frame.schema
    assert found.row_count == expected.row_count == 30
    assert 0.5 < found.byte_size / expected.byte_size < 2
    names = [name for name in stored(storage) if not name.endswith(".crc")]
    assert len(names) == 6
    assert all(name.endswith(".parquet") for name in names)


def test_a_file_that_the_writer_makes_for_no_rows(
    spark: SparkSession, storage: WarehouseStorage
) -> None:
    # Only the second of three tasks has rows.
    frame = spark.range(0, 3, 1, 3).where("id = 1")

    source = materialized(frame, storage)

    assert (source.row_count, len(source.files), source.frame.collect()) == (1, 1, [(1,)])


def test_rows_keep_their_order_within_a_file(
    spark: SparkSession, storage: WarehouseStorage
) -> None:
    frame = spark.range(0, 100_000, 1, 2).selectExpr("-id AS id").sortWithinPartitions("id")

    values = materialized(frame, storage).values(["id"])

    assert values is not None
    assert values[0].to_pylist() == [*range(-49_999, 1), *range(-99_999, -49_999)]


def test_columns_that_know_their_length(spark: SparkSession, storage: WarehouseStorage) -> None:
    frame = with_noted_lengths(spark.sql("SELECT 'a    ' AS c, 'longer' AS d"), {"c": 5, "d": 2})
    assert noted_lengths(frame.schema) == {"c": 5, "d": 2}

    assert materialized(frame, storage).frame.collect() == [("a    ", "longer")]


_OF_TASKS = {
    "void within": "array(NULL) AS x",
    "an empty struct": "CAST(NULL AS STRUCT<>) AS x",
    "names in two cases": "named_struct('a', 1, 'A', 2) AS x",
    "a collation": "'a' COLLATE UTF8_LCASE AS x",
    "a variant": "parse_json('1') AS x",
    "a collation within": "map('k', array('a' COLLATE UNICODE)) AS x",
}


@pytest.mark.parametrize("value", _OF_TASKS.values(), ids=_OF_TASKS)
def test_other_types_are_left_to_tasks(
    spark: SparkSession, storage: WarehouseStorage, value: str
) -> None:
    try:
        frame = spark.sql(f"SELECT {value}")
    except Exception as error:  # noqa: BLE001
        pytest.skip(f"this Spark has no such type: {translated(error).message}")

    assert not spark_can_write(frame.schema, storage)
    assert spark_can_write(spark.range(1).schema, storage)


def test_a_path_that_hadoop_would_expand_is_left_to_tasks(spark: SparkSession) -> None:
    schema = spark.range(1).schema
    place = WarehouseStorage(pafs.LocalFileSystem(), "/w", "file:///w")

    assert spark_can_write(schema, place)
    assert not spark_can_write(schema, replace(place, uri="file:///w/${user.name}"))
    assert not spark_can_write(schema, replace(place, uri=None))


def missing(spark: SparkSession, folder: Path) -> DataFrame:
    spark.range(0, 10, 1, 1).write.parquet(str(folder))
    frame = spark.read.parquet(str(folder))
    for path in folder.glob("*.parquet"):
        path.unlink()
    return frame


_FAILING: Mapping[str, Callable[[SparkSession, Path], DataFrame]] = {
    "an expression": lambda spark, _: spark.range(10).selectExpr("id / (id - id) AS x"),
    "a subquery": lambda spark, _: spark.sql("SELECT (SELECT id FROM range(3)) AS x"),
    "a file that is not there": missing,
    "Python": lambda spark, _: spark.range(9).select(F.udf(lambda _: int("x"), "long")("id")),
    "Java": lambda spark, _: spark.range(9).selectExpr(
        "java_method('java.lang.Integer', 'parseInt', concat('q', id)) AS x"
    ),
}


def failure(frame: DataFrame, storage: WarehouseStorage) -> JobError:
    with pytest.raises((PySparkException, Py4JError)) as raised:
        materialized(frame, storage)
    return translated(raised.value)


@pytest.mark.parametrize("kind", _FAILING)
def test_failures_are_told_as_those_of_tasks(
    spark: SparkSession, storage: WarehouseStorage, tmp_path: Path, kind: str
) -> None:
    frame = _FAILING[kind](spark, tmp_path / "source")

    found = failure(frame, storage)
    expected = failure(frame, replace(storage, uri=None))

    assert found.code is expected.code
    assert found.remedy == expected.remedy
    if found.code is not ErrorCode.SPARK_FAILED:
        assert found.message == expected.message
    assert storage.root not in found.message
    assert "TASK_WRITE_FAILED" not in found.message
    assert stored(storage) == []


def test_a_run_that_was_given_up_meanwhile(spark: SparkSession, storage: WarehouseStorage) -> None:
    with pytest.raises(CommitError) as raised:
        materialize(spark, spark.range(3), ["id"], storage, _SCRATCH)

    assert raised.value.code is ErrorCode.RUN_GIVEN_UP
