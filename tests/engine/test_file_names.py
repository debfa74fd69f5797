"""Files are read whatever they are called, or their source is refused with the name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField

from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.request import FileSource, SqlSource
from spark_jobs.engine.source import source_files as files_module
from spark_jobs.engine.source.materialized import spilled_frame
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spark_paths import escape_glob
from spark_jobs.spark_reads.mapped_columns import ReadColumns
from spark_jobs.spark_reads.parquet_rows import parquet_rows
from spark_jobs.spi.storage import WarehouseStorage
from spark_jobs.spi.tables import PlannedFile
from tests.conformance.harness import TARGET, Harness
from tests.engine.landed import Landing, new_landing
from tests.support.source_reading import rows_of

# "ü" is one character in the first one and two in the second.
NAMES = (
    *("m\u00fcnchen", "mu\u0308nchen", "日本", "😀", "a\u00a0b", "a\u2028b"),
    *("a b", " a", "a ", "100%", "a%20b", "%C3%BC", "a#b", "a?b", "a&b;c", "a,b", "a+b"),
    *("a{b,c}d", "a[bc]d", "a*b", "a\\b", "a\nb", "a\rb", "a\tb", "a\"b'c", "~a", "a=b", "_p=1"),
)
# What Spark does not take for data; nor does anything else here.
HIDDEN = ("_a", ".a", "_metadata", "_common_metadata", "_metadata.old", "a._COPYING_")
# As Python has what is no UTF-8 in a name.
NOT_UTF8 = "m\udcfcnchen"


@pytest.fixture
def landing(make_table: Callable[..., Harness], tmp_path: Path) -> Landing:
    return new_landing(make_table, tmp_path)


def write(kind: str, path: Path, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        if kind == "csv":
            file.write(f"id\n{number}\n".encode())
        else:
            pq.write_table(pa.table({"id": [number]}), file)


def ids(landing: Landing, kind: str, path: str, options: dict[str, str] | None = None) -> list[Any]:
    header = {"header": "true"} if kind == "csv" else {}
    source = FileSource("s", path, kind, {**header, **(options or {})}, "id BIGINT")
    rows = rows_of(landing.harness.spark, landing.harness.open(), TARGET, source)
    return sorted(row[0] for row in rows)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_folder_of_all_names(landing: Landing, kind: str) -> None:
    for number, name in enumerate(NAMES):
        write(kind, landing.folder / name, number)
    for name in HIDDEN:
        write(kind, landing.folder / name, -1)

    assert ids(landing, kind, str(landing.folder)) == [*range(len(NAMES))]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_patterns(landing: Landing, kind: str) -> None:
    for number, name in enumerate(NAMES):
        write(kind, landing.folder / "köln" / name, number)
    write(kind, landing.folder / "other" / "x", -1)
    cities = f"{landing.folder}/k?ln"

    assert ids(landing, kind, f"{cities}/*") == [*range(len(NAMES))]
    assert ids(landing, kind, f"{cities}/../[^o]*/m*nchen") == [0, 1]
    assert ids(landing, kind, f"file://{cities}/{{日本,a[a-z#]b,100%}}") == [2, 9, 12]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_partition_folders_of_all_names(landing: Landing, kind: str) -> None:
    for number, name in enumerate(NAMES):
        write(kind, landing.folder / f"p={name}" / "a", number)

    assert ids(landing, kind, str(landing.folder)) == [*range(len(NAMES))]


@pytest.mark.by_turns(12)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", NAMES)
def test_a_file_and_a_folder_of_each_name(landing: Landing, kind: str, name: str) -> None:
    write(kind, landing.folder / name, 1)
    write(kind, landing.folder / "in" / name / "a", 2)

    assert ids(landing, kind, escape_glob(f"{landing.folder}/{name}")) == [1]
    assert ids(landing, kind, escape_glob(f"{landing.folder}/in/{name}")) == [2]


@pytest.mark.parametrize("pattern", ["", "/*"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_colon(landing: Landing, kind: str, pattern: str) -> None:
    """Hadoop opens no local file of such a name, and no pattern in its folder."""
    write(kind, landing.folder / "a:b", 1)
    options = {"header": "true"} if kind == "csv" else {}
    query = "SELECT id + 0 AS id FROM files"

    result = landing.insert(f"{landing.folder}{pattern}", kind, options, "id BIGINT", query)

    if kind == "csv" and not pattern:
        assert landing.rows("id") == [(1,)]
        return
    assert result.error is not None
    # Spark 3.5 has no condition for what Hadoop says of the name of a Parquet file.
    names = landing.harness.spark.version >= "4" or kind == "csv" or bool(pattern)
    assert not names or result.error.code.endswith("_UNREADABLE"), result.error
    assert "a:b" in result.error.message
    assert landing.rows("id") == []


def test_a_summary_of_parquet_files_has_no_rows(landing: Landing) -> None:
    footers: list[pq.FileMetaData] = []
    landing.folder.mkdir()
    for number in range(2):
        path = landing.folder / f"{number}.parquet"
        pq.write_table(pa.table({"id": [number]}), path, metadata_collector=footers)
        footers[-1].set_file_path(path.name)
    pq.write_metadata(pa.schema({"id": pa.int64()}), landing.folder / "_metadata", footers)

    result = landing.insert(str(landing.folder), "parquet", query="SELECT id FROM files")

    assert result.error is None, result.error
    assert landing.rows("id") == [(0,), (1,)]
    assert result.metrics.sources["files"].files == 2
    assert result.metrics.sources["files"].records == 2


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("place", ["folder", "pattern", "partition", "nested"])
def test_a_file_that_spark_does_not_see(landing: Landing, kind: str, place: str) -> None:
    """Java leaves it out, as it does with any that is not ASCII where its locale is C."""
    write(kind, landing.folder / "p=1" / "a", 1)
    name = f"p={NOT_UTF8}/a" if place == "partition" else f"p=1/{NOT_UTF8}"
    write(kind, landing.folder / name, 2)
    path = f"{landing.folder}/p=1" if place == "folder" else str(landing.folder)
    path += "/*/*" if place == "pattern" else ""
    options = {"header": "true"} if kind == "csv" else {}

    result = landing.insert(path, kind, options, "id BIGINT", query="SELECT id FROM files")

    assert result.error is not None
    assert result.error.code == "SOURCE_UNREADABLE", result.error
    assert "Spark does not see" in result.error.message
    assert r"m\xfcnchen" in result.error.message
    assert landing.rows("id") == []


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_in_a_query_that_spark_does_not_see(landing: Landing, kind: str) -> None:
    write(kind, landing.folder / "a", 1)
    write(kind, landing.folder / NOT_UTF8, 2)
    query = f"SELECT 1L AS id WHERE 1 IN (SELECT count(*) FROM {kind}.`{landing.folder}`)"

    result = landing.run(InsertIntoSpec("s", by_name=True), SqlSource("s", query))

    assert result.error is not None
    assert result.error.code == "SOURCE_UNREADABLE", result.error
    assert r"m\xfcnchen" in result.error.message
    assert landing.rows("id") == []


def test_what_a_stream_has_not_committed(landing: Landing) -> None:
    """Spark's log of a stream says which files count; the others are of batches that failed."""
    for number, name in enumerate(["a", "b"]):
        write("csv", landing.folder / name, number)
    entry = {
        "path": f"file://{landing.folder}/a".replace(" ", "%20"),
        "size": (landing.folder / "a").stat().st_size,
        "isDir": False,
        "modificationTime": 0,
        "blockReplication": 1,
        "blockSize": 1,
        "action": "add",
    }
    (landing.folder / "_spark_metadata").mkdir()
    (landing.folder / "_spark_metadata" / "0").write_text(f"v1\n{json.dumps(entry)}")

    assert ids(landing, "csv", str(landing.folder)) == [0]


def test_a_file_that_comes_when_all_are_listed(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("csv", landing.folder / "a", 1)
    listed = files_module._input_files

    def then_comes_another(*arguments: Any) -> Any:
        found = listed(*arguments)
        write("csv", landing.folder / "b", 2)
        return found

    monkeypatch.setattr(files_module, "_input_files", then_comes_another)

    assert ids(landing, "csv", str(landing.folder)) == [1]


def test_a_file_that_grows_when_all_are_listed(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("csv", landing.folder / "a", 1)
    listed = files_module._input_files

    def then_grows(*arguments: Any) -> Any:
        found = listed(*arguments)
        with (landing.folder / "a").open("a") as file:
            file.write("2\n")
        return found

    monkeypatch.setattr(files_module, "_input_files", then_grows)

    with pytest.raises(JobError) as raised:
        ids(landing, "csv", str(landing.folder))
    assert raised.value.code is ErrorCode.SOURCE_UNREADABLE
    assert "Spark has listed 5 bytes in 1 files, which have 7" in raised.value.message


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [("_a.parquet", 0, "is not there for Spark"), ("a.parquet", 1, "bytes for Spark")],
    ids=["hidden", "other size"],
)
def test_a_data_file_that_spark_reads_in_another_way(
    spark: SparkSession, tmp_path: Path, name: str, more: int, said: str
) -> None:
    files = [_data_file(tmp_path / each, number) for number, each in enumerate(["b.parquet", name])]
    files[1] = replace(files[1], size=files[1].size + more)
    group = ReadColumns(files, (), "id bigint", ())

    with pytest.raises(JobError) as raised:
        parquet_rows(spark, files, [group], "file://")

    assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE
    assert f"{name} " in raised.value.message
    assert said in raised.value.message


def _data_file(path: Path, ordinal: int) -> PlannedFile:
    pq.write_table(pa.table({"id": [1]}), path)
    return PlannedFile(ordinal, str(path), {}, 1, path.stat().st_size, {})


def test_a_file_of_the_job_that_spark_does_not_see(spark: SparkSession, tmp_path: Path) -> None:
    storage = WarehouseStorage(pafs.LocalFileSystem(), str(tmp_path), f"file://{tmp_path}")
    for name in ("a.parquet", "_b.parquet"):
        pq.write_table(pa.table({"row": [True], "c0": [1]}), tmp_path / name)
    fields = [StructField("id", LongType())]

    with pytest.raises(JobError) as raised:
        spilled_frame(spark, storage, ["a.parquet", "_b.parquet"], fields, {"id": "c0"})

    assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert "Spark sees 1 of 2 files" in raised.value.message
