"""A task's rows on their way to a file and back: failures keep their code, nothing stays open."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.engine.runtime.spill import SpilledPart, SpillReader, SpillWriter
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spi.arrow_tasks import ScanTasks
from spark_jobs.storage import hdfs

_WAREHOUSE = "127.0.0.1:9/warehouse"


@pytest.fixture(autouse=True)
def in_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_jobs.engine.runtime.spill.task_key", lambda: "0-0-0")


@pytest.fixture
def without_client(monkeypatch: pytest.MonkeyPatch) -> pafs.FileSystem:
    """HDFS where hdfs-native is not installed."""
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    hdfs._client.cache_clear()
    return hdfs.hdfs_filesystem(HdfsOptions.of(f"hdfs://{_WAREHOUSE}", {}))


def rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"row": pa.array(range(count), pa.int64())})


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    local = pafs.LocalFileSystem()

    (report,) = SpillWriter(local, str(tmp_path))([rows(3), rows(0), rows(2)])
    path = str(tmp_path / report["file"][0].as_py())
    reader = ScanTasks(SpillReader(local, ("row",)), ((), (SpilledPart(path),)))
    found = list(reader([pa.RecordBatch.from_pydict({"number": [1]})]))

    assert report["row_count"].to_pylist() == [5]
    assert pa.Table.from_batches(found).column("row").to_pylist() == [0, 1, 2, 0, 1]
    assert list(SpillWriter(local, str(tmp_path))([rows(0)])) == []


def test_tasks_share_the_row_groups_of_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table({"row": range(5), "other": range(5)}), path, row_group_size=2)
    reader = SpillReader(pafs.LocalFileSystem(), ("row",))

    parts = [SpilledPart(path, (2, 0)), SpilledPart(path, (1,)), SpilledPart(path)]
    found = [pa.Table.from_batches(reader.read([part]))["row"].to_pylist() for part in parts]

    assert found == [[4, 0, 1], [2, 3], [0, 1, 2, 3, 4]]


def test_a_writer_without_the_client_says_so(without_client: pafs.FileSystem) -> None:
    with pytest.raises(CatalogError) as raised:
        list(SpillWriter(without_client, _WAREHOUSE)([rows(1)]))

    assert raised.value.code is ErrorCode.LIBRARY_MISSING


def test_a_reader_without_the_client_says_so(without_client: pafs.FileSystem) -> None:
    part = SpilledPart(f"{_WAREHOUSE}/0.parquet")
    reader = ScanTasks(SpillReader(without_client, ("row",)), ((part,),))

    with pytest.raises(CatalogError) as raised:
        list(reader([pa.RecordBatch.from_pydict({"number": [0]})]))

    assert raised.value.code is ErrorCode.LIBRARY_MISSING


def test_a_task_that_fails_leaves_no_file_open(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield rows(5_000_000)
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost") as raised:
        list(SpillWriter(pafs.LocalFileSystem(), str(tmp_path))(batches()))

    assert raised.tb is not None  # its frames keep alive what was not closed
    (file,) = tmp_path.iterdir()
    opened = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    assert str(file) not in opened
