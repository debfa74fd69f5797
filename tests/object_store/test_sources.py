"""Sources on s3:// with stock PySpark: what Python reads is read, the rest is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import FileSource
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.session import fixed_meaning
from spark_jobs.engine.source.copied_files import copied_files
from spark_jobs.engine.source.open_source import OpenSource, open_source
from spark_jobs.engine.source.pinned_tables import PinnedTables
from spark_jobs.errors import CatalogError, ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import NAME, create
from tests.support.source_reading import evaluated
from tests.support.stores import ObjectStore

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": ["a", None, "ü"]})


@pytest.fixture(scope="module")
def bucket(store: ObjectStore) -> str:
    return store.new_bucket()


@pytest.fixture(scope="module")
def connector(store: ObjectStore, bucket: str) -> Connector:
    connector = open_connector(store.catalog(f"s3://{bucket}/warehouse"), store.credentials)
    create(connector, {"id": "bigint"})
    return connector


def opened_source(spark: SparkSession, connector: Connector, source: FileSource) -> OpenSource:
    return open_source(spark, source, connector, PinnedTables())


def opened(spark: SparkSession, connector: Connector, source: FileSource) -> DataFrame:
    return opened_source(spark, connector, source).frame


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()), key=repr)


def put(
    store: ObjectStore, path: str, table: pa.Table, *, is_orc: bool = False, **more: Any
) -> None:
    with store.filesystem().open_output_stream(path) as stream:
        if is_orc:
            orc.write_table(table, stream)
        else:
            pq.write_table(table, stream, **more)


@pytest.mark.parametrize("format_", ["parquet", "orc"])
@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_folder_is_read_without_a_hadoop_jar(
    spark: SparkSession,
    store: ObjectStore,
    bucket: str,
    connector: Connector,
    format_: str,
    scheme: str,
) -> None:
    folder = f"{bucket}/{format_}-{scheme}"
    for part in range(2):
        put(store, f"{folder}/part-{part}", ROWS, is_orc=format_ == "orc")
    put(store, f"{folder}/_SUCCESS", ROWS)

    frame = opened(spark, connector, FileSource("s", f"{scheme}://{folder}/", format_))

    assert dict(frame.dtypes) == {"id": "bigint", "v": "string"}
    assert rows(frame) == sorted([(1, "a"), (2, None), (3, "ü")] * 2, key=repr)


def test_each_row_group_of_a_large_file_is_read_once(
    spark: SparkSession,
    store: ObjectStore,
    bucket: str,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spark_jobs.engine.source.arrow_source.SPLIT_BYTES", 4096)
    table = pa.table({"id": range(20_000)})
    put(store, f"{bucket}/large/part", table, row_group_size=1_000)

    frame = opened(spark, connector, FileSource("s", f"s3://{bucket}/large/part", "parquet"))

    assert frame.rdd.getNumPartitions() > 3
    assert sorted(row.id for row in frame.collect()) == list(range(20_000))


def test_of_files_that_are_copied_each_row_group_is_read_once_and_in_one_version(
    spark: SparkSession,
    store: ObjectStore,
    bucket: str,
    connector: Connector,
) -> None:
    path = f"{bucket}/copied/part"
    put(store, path, pa.table({"id": range(20_000)}), row_group_size=1_000)
    source = opened_source(spark, connector, FileSource("s", f"s3://{path}", "parquet"))
    assert source.files is not None
    files = copied_files(spark, source.files, source.frame, source.location)
    assert files is not None
    copied = files.rows([0], 5)
    tasks = pa.RecordBatch.from_pydict({"id": list(range(len(copied.files)))})

    table = pa.Table.from_batches(copied.function([tasks]))

    assert len(copied.files) == 5
    assert sorted(table.column("id").to_pylist()) == list(range(20_000))
    put(store, path, pa.table({"id": range(20_001)}))
    with pytest.raises(CatalogError, match="was written again"):
        list(copied.function([tasks]))


def test_types_are_those_that_spark_reads(
    spark: SparkSession, store: ObjectStore, bucket: str, connector: Connector, tmp_path: Path
) -> None:
    statement = (
        "SELECT 1Y AS byte, 2S AS short, 1.5D AS d, 1.25BD AS dec, DATE'1500-01-01' AS day,"
        " TIMESTAMP'2020-01-01 12:00:00.000001' AS ltz, TIMESTAMP_NTZ'1900-01-01 00:00:00' AS ntz,"
        " X'00FF' AS bin, array(struct(1 AS x, 'y' AS y)) AS nested, map('k', 1) AS m, true AS b"
    )
    written = spark.sql(statement)
    for kind in ("INT96", "TIMESTAMP_MICROS"):
        spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
        written.coalesce(1).write.parquet(str(tmp_path / kind))
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
        (local,) = (tmp_path / kind).glob("part-*")
        store.client().put_object(Bucket=bucket, Key=f"types/{kind}", Body=local.read_bytes())

        frame = opened(spark, connector, FileSource("s", f"s3://{bucket}/types/{kind}", "parquet"))

        assert frame.dtypes == written.dtypes
        assert frame.collect() == written.collect()


def test_files_that_were_not_written_by_spark_are_read_in_its_types(
    spark: SparkSession, store: ObjectStore, bucket: str, connector: Connector
) -> None:
    table = pa.table(
        {
            "u": pa.array([2**32 - 1], pa.uint32()),
            "k": pa.array(["a"]).dictionary_encode(),
            "large": pa.array(["b"], pa.large_string()),
        }
    )
    put(store, f"{bucket}/others/part", table)

    frame = opened(spark, connector, FileSource("s", f"s3://{bucket}/others/part", "parquet"))

    assert frame.dtypes == [("u", "bigint"), ("k", "string"), ("large", "string")]
    assert rows(frame) == [(2**32 - 1, "a", "b")]


def test_the_schema_of_the_source_decides(
    spark: SparkSession, store: ObjectStore, bucket: str, connector: Connector
) -> None:
    put(store, f"{bucket}/schema/part", ROWS)
    path = f"s3://{bucket}/schema/part"

    frame = opened(spark, connector, FileSource("s", path, "parquet", schema="ID BIGINT"))

    assert frame.dtypes == [("ID", "bigint")]
    assert rows(frame) == [(1,), (2,), (3,)]
    with pytest.raises(JobError, match="column id holds BIGINT where INT is expected"):
        opened(spark, connector, FileSource("s", path, "parquet", schema="ID INT"))
    with pytest.raises(JobError, match="schema/part has no column missing"):
        opened(spark, connector, FileSource("s", path, "parquet", schema="ID INT, missing DATE"))


@pytest.mark.parametrize(
    ("path", "format_", "options", "reason"),
    [
        ("refused/a.xml", "xml", {}, "only CSV, JSON, text, Avro, parquet and ORC"),
        ("refused/*", "parquet", {}, "patterns"),
        ("refused/p", "parquet", {"mergeSchema": "true"}, "option mergeSchema"),
        ("refused/by-day", "parquet", {}, "day=1"),
    ],
)
def test_what_only_sparks_own_reader_can_do_is_refused(
    spark: SparkSession,
    store: ObjectStore,
    bucket: str,
    connector: Connector,
    path: str,
    format_: str,
    options: Mapping[str, str],
    reason: str,
) -> None:
    put(store, f"{bucket}/refused/by-day/day=1/part", ROWS)

    with pytest.raises(JobError, match=reason) as raised:
        opened(spark, connector, FileSource("s", f"s3://{bucket}/{path}", format_, options))

    assert raised.value.code is ErrorCode.NOT_SUPPORTED
    assert "hadoop-aws" in raised.value.remedy


def test_nanoseconds_are_read_if_they_are_whole_microseconds(
    spark: SparkSession, store: ObjectStore, bucket: str, connector: Connector
) -> None:
    for name, nanoseconds in (("whole", 5_000), ("finer", 5_001)):
        times = pa.array([nanoseconds], pa.timestamp("ns"))
        put(store, f"{bucket}/{name}/part", pa.table({"at": times}))

    def read(name: str) -> list[tuple[Any, ...]]:
        source = FileSource("s", f"s3://{bucket}/{name}/part", "parquet")
        with fixed_meaning(spark, "UTC"):
            return rows(opened(spark, connector, source))

    assert read("whole") == [(datetime(1970, 1, 1, 0, 0, 0, 5),)]  # noqa: DTZ001 - without zone
    with pytest.raises(Exception, match="at") as raised:
        read("finer")
    assert translated(raised.value).code is ErrorCode.VALUE_NOT_STORABLE


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("nothing/here", ErrorCode.SOURCE_NOT_FOUND),
        ("damaged/part", ErrorCode.SOURCE_UNREADABLE),
    ],
)
def test_a_missing_or_damaged_source_is_named(
    spark: SparkSession,
    store: ObjectStore,
    bucket: str,
    connector: Connector,
    path: str,
    code: ErrorCode,
) -> None:
    store.client().put_object(Bucket=bucket, Key="damaged/part", Body=b"not parquet")

    with pytest.raises(JobError, match=f"source s .*{path}") as raised:
        opened(spark, connector, FileSource("s", f"s3://{bucket}/{path}", "parquet"))

    assert raised.value.code is code


def test_a_value_that_does_not_fit_the_schema_names_the_file(
    spark: SparkSession, store: ObjectStore, bucket: str, connector: Connector
) -> None:
    from spark_jobs.engine.runtime.failures import translated

    put(store, f"{bucket}/misfit/part", pa.table({"id": ["x"]}))
    source = FileSource("s", f"s3://{bucket}/misfit/part", "parquet", schema="id INT")

    with pytest.raises(Exception, match="misfit/part") as raised:
        opened(spark, connector, source).collect()

    assert translated(raised.value).code is ErrorCode.SOURCE_UNREADABLE


def test_a_wrong_key_is_told_for_a_source(
    spark: SparkSession, gateway: ObjectStore, connector: Connector, bucket: str
) -> None:
    from spark_jobs.storage.table_storage import source_location

    wrong = {**gateway.credentials, "fs.s3.accessKeySecret": "planted-secret-key"}
    options = {**gateway.catalog("s3://b/w").options, **wrong}
    other = replace(connector, locate=lambda uri: source_location(uri, options))

    with pytest.raises(JobError, match="source s ") as raised:
        opened(spark, other, FileSource("s", f"s3://{bucket}/schema/part", "parquet"))

    assert raised.value.code is ErrorCode.SOURCE_UNREADABLE
    assert "key of the catalog connection" in raised.value.remedy
    assert "planted" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "format_", "content", "options"),
    [
        ("a.csv", "csv", b'id,v\n1,"x\ny"\n2,\n', {"header": "true"}),
        ("a.csv.gz", "csv", gzip.compress(b'id,v\n1,"x\ny"\n2,\n'), {"header": "true"}),
        ("a.json", "json", b'{"ID":1,"v":"x\\ny"}\n{"id":2}\n', {}),
    ],
)
def test_landed_files_are_read_without_a_hadoop_jar(
    spark: SparkSession,
    store: ObjectStore,
    bucket: str,
    connector: Connector,
    name: str,
    format_: str,
    content: bytes,
    options: Mapping[str, str],
) -> None:
    store.client().put_object(Bucket=bucket, Key=f"landed/{name}/{name}", Body=content)
    path = f"s3://{bucket}/landed/{name}"

    source = FileSource("s", path, format_, options, "id BIGINT, v STRING")
    found = evaluated(spark, connector, NAME, source)

    assert rows(found["s"].frame) == [(1, "x\ny"), (2, None)]
    assert (found.metrics["s"].files, found.metrics["s"].bytes) == (1, len(content))


def test_bad_records_are_set_aside_in_the_store(
    spark: SparkSession, store: ObjectStore, bucket: str, connector: Connector
) -> None:
    store.client().put_object(Bucket=bucket, Key="bad/a.csv", Body=b"1\nx\n")
    source = FileSource(
        "s",
        f"s3://{bucket}/bad",
        "csv",
        schema="id BIGINT",
        on_bad_rows="quarantine",
        quarantine=f"s3://{bucket}/aside",
    )

    found = evaluated(spark, connector, NAME, source)

    assert rows(found["s"].frame) == [(1,)]
    assert found.metrics["s"].quarantine == f"s3://{bucket}/aside/operation-1/s.jsonl"
    stored = store.client().get_object(Bucket=bucket, Key="aside/operation-1/s.jsonl")
    record = json.loads(stored["Body"].read())
    assert (record["file"], record["line"], record["raw"]) == (f"s3://{bucket}/bad/a.csv", 2, "x")
