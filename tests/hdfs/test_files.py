"""HDFS as a file system of pyarrow: what everything that reads and writes files relies on."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.storage.hdfs import hdfs_filesystem
from tests.judge.hdfs_server import Hdfs

_ROOT = Path(__file__).resolve().parents[2]
# Opens a file, in a Python that has no hdfs-native.
_WITHOUT_CLIENT = """
import pickle, sys
sys.modules["hdfs_native"] = None
filesystem, opens, path = pickle.load(sys.stdin.buffer)
try:
    getattr(filesystem, opens)(path)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def filesystem(hdfs: Hdfs) -> pafs.FileSystem:
    return hdfs_filesystem(HdfsOptions.of(hdfs.uri, {}))


@pytest.fixture
def folder(hdfs: Hdfs) -> str:
    return hdfs.new_warehouse().removeprefix("hdfs://")


def written(filesystem: pafs.FileSystem, path: str, content: bytes) -> None:
    with filesystem.open_output_stream(path) as stream:
        stream.write(content)


def test_files_are_read_anywhere(filesystem: pafs.FileSystem, folder: str) -> None:
    content = os.urandom(3_000_000)
    written(filesystem, f"{folder}/new/file", content)

    with filesystem.open_input_file(f"{folder}/new/file") as file:
        assert file.size() == len(content)
        assert file.read_at(10, 2_999_995) == content[-5:]
        assert file.read_at(10, 4_000_000) == b""
        assert file.read_at(70_000, 1_000_000) == content[1_000_000:1_070_000]
        file.seek(100)
        assert file.read(5) == content[100:105]
        assert file.read() == content[105:]
        assert file.read() == b""


def test_parquet_files_of_several_blocks_are_read_by_column(hdfs: Hdfs, folder: str) -> None:
    from hdfs_native import WriteOptions

    table = pa.table({"a": range(300_000), "b": [str(i) * 5 for i in range(300_000)]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=50_000, compression="none", use_dictionary=False)
    path = f"/{folder.partition('/')[2]}/blocks.parquet"
    with hdfs.client().create(path, WriteOptions(block_size=1024 * 1024)) as writer:
        writer.write(sink.getvalue().to_pybytes())
    filesystem = hdfs_filesystem(HdfsOptions.of(hdfs.uri, {}))

    read = pq.read_table(f"{folder}/blocks.parquet", filesystem=filesystem, columns=["a"])

    assert read == table.select(["a"])


def test_files_are_described_as_pyarrow_does(filesystem: pafs.FileSystem, folder: str) -> None:
    written(filesystem, f"{folder}/a/b/file", b"12345")

    (file,) = filesystem.get_file_info([f"{folder}/a/b/file"])
    assert (file.type, file.size, file.base_name) == (pafs.FileType.File, 5, "file")
    assert file.mtime.timestamp() > 1_700_000_000
    assert filesystem.get_file_info(f"{folder}/none").type == pafs.FileType.NotFound
    assert filesystem.get_file_info(folder).type == pafs.FileType.Directory
    below = filesystem.get_file_info(pafs.FileSelector(folder, recursive=True))
    assert {each.path for each in below} == {f"{folder}/a", f"{folder}/a/b", file.path}
    missing = pafs.FileSelector(f"{folder}/none", allow_not_found=True)
    assert filesystem.get_file_info(missing) == []
    with pytest.raises(FileNotFoundError):
        filesystem.get_file_info(pafs.FileSelector(f"{folder}/none"))


def test_files_are_moved_over_others_and_removed(filesystem: pafs.FileSystem, folder: str) -> None:
    written(filesystem, f"{folder}/old", b"old")
    written(filesystem, f"{folder}/new", b"new")

    filesystem.move(f"{folder}/new", f"{folder}/old")

    with filesystem.open_input_stream(f"{folder}/old") as file:
        assert file.read() == b"new"
    filesystem.delete_file(f"{folder}/old")
    for gone in (filesystem.delete_file, filesystem.delete_dir, filesystem.open_input_file):
        with pytest.raises(FileNotFoundError):
            gone(f"{folder}/old")
    filesystem.create_dir(f"{folder}/x/y", recursive=True)
    filesystem.create_dir(f"{folder}/x/y", recursive=True)
    filesystem.delete_dir(f"{folder}/x")
    assert filesystem.get_file_info(pafs.FileSelector(folder)) == []


def test_a_path_in_another_hdfs_is_refused(filesystem: pafs.FileSystem) -> None:
    with pytest.raises(OSError, match="is not in hdfs://"):
        filesystem.get_file_info("elsewhere:8020/a")


def test_another_process_reads_the_same(filesystem: pafs.FileSystem, folder: str) -> None:
    copy = pickle.loads(pickle.dumps(filesystem))

    assert copy == filesystem
    written(copy, f"{folder}/file", b"1")
    assert filesystem.get_file_info(f"{folder}/file").size == 1


@pytest.mark.parametrize("opens", ["open_input_file", "open_output_stream"])
def test_an_executor_without_the_client_says_so(
    filesystem: pafs.FileSystem, folder: str, opens: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_CLIENT],
        input=pickle.dumps((filesystem, opens, f"{folder}/file")),
        capture_output=True,
        cwd=_ROOT,
        check=True,
    )

    told = done.stdout.decode()
    assert told.startswith("CatalogError")
    assert "hdfs-native" in told
    assert "executors" in told


def test_the_lease_of_a_run_ends_for_every_process(
    filesystem: pafs.FileSystem, folder: str
) -> None:
    lease = Lease(filesystem, f"{folder}/_operations/operation-1")
    other: Lease = pickle.loads(pickle.dumps(lease))

    assert not lease.is_held()
    lease.take()
    assert other.is_held()
    lease.end()
    assert not other.is_held()
    lease.end()
