"""Which columns of a file are those of its schema; a scan and a rewrite refuse all others."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite
from spark_jobs.datafiles.recorded_columns import OtherColumnsError, require_recorded
from spark_jobs.errors import NotSupportedError
from tests.datafiles.test_rewrite import update

LOCAL = pafs.LocalFileSystem()
NOTHING = np.zeros(0, np.int64)


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


@pytest.mark.parametrize(
    ("found", "recorded"),
    [
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.timestamp("ns"), pa.timestamp("us", "UTC")),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.large_string(), pa.string()),
        (pa.binary(3), pa.binary()),
        (pa.string(), pa.binary()),
        (pa.binary(), pa.string()),
        (pa.int8(), pa.int32()),
        (pa.uint8(), pa.int16()),
        (pa.uint16(), pa.int32()),
        (pa.uint64(), pa.int64()),
        (pa.decimal128(9, 2), pa.decimal128(18, 2)),
        (pa.list_(pa.field("item", pa.int32())), pa.list_(pa.field("element", pa.int32()))),
        (struct(b=pa.int32(), more=pa.string(), a=pa.int8()), struct(a=pa.int8(), b=pa.int32())),
        (
            pa.map_(pa.string(), struct(at=pa.timestamp("ms"))),
            pa.map_(pa.string(), struct(at=pa.timestamp("us"))),
        ),
    ],
)
def test_what_is_stored_alike(found: pa.DataType, recorded: pa.DataType) -> None:
    columns = pa.schema([pa.field("more", pa.int32()), pa.field("c", found, nullable=False)])
    require_recorded(columns, [pa.field("c", recorded)])


@pytest.mark.parametrize(
    ("found", "recorded", "path"),
    [
        (pa.int32(), pa.int64(), "c"),
        (pa.int32(), pa.int8(), "c"),
        (pa.uint8(), pa.int8(), "c"),
        (pa.string(), pa.int32(), "c"),
        (pa.binary(3), pa.string(), "c"),
        (pa.uint16(), pa.int16(), "c"),
        (pa.uint32(), pa.int32(), "c"),
        (pa.uint32(), pa.int64(), "c"),
        (pa.float32(), pa.float64(), "c"),
        (pa.int32(), pa.date32(), "c"),
        (pa.int64(), pa.timestamp("us"), "c"),
        (pa.decimal128(9, 2), pa.decimal128(9, 3), "c"),
        (pa.decimal128(18, 2), pa.decimal128(9, 2), "c"),
        (pa.int32(), struct(a=pa.int32()), "c"),
        (struct(a=pa.int32()), struct(a=pa.int64()), "c.a"),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), "c.element"),
        (pa.list_(pa.int32()), pa.map_(pa.int32(), pa.int32()), "c"),
        (pa.map_(pa.int32(), pa.int32()), pa.map_(pa.string(), pa.int32()), "c.key"),
        (
            pa.map_(pa.string(), pa.list_(struct(a=pa.int32()))),
            pa.map_(pa.string(), pa.list_(struct(a=pa.int64()))),
            "c.value.element.a",
        ),
    ],
)
def test_another_type(found: pa.DataType, recorded: pa.DataType, path: str) -> None:
    with pytest.raises(OtherColumnsError, match=rf"holds .* in column {path}, but its schema"):
        require_recorded(pa.schema([("c", found)]), [pa.field("c", recorded)])


@pytest.mark.parametrize(
    ("recorded", "path"),
    [
        (pa.field("C", struct(a=pa.int32())), "C"),
        (pa.field("c", struct(a=pa.int32(), b=pa.int32())), "c.b"),
    ],
)
def test_a_lack(recorded: pa.Field, path: str) -> None:
    columns = pa.schema([("c", struct(a=pa.int32()))])
    with pytest.raises(OtherColumnsError, match=f"has no column {path}, which its schema has"):
        require_recorded(columns, [recorded])


@pytest.fixture(params=["parquet", "orc"])
def file(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = str(tmp_path / f"data-1.{request.param}")
    table = pa.table({"id": pa.array([1], pa.int32()), "s": [{"a": 1}]})
    write = pq.write_table if request.param == "parquet" else pyarrow.orc.write_table
    write(table, path)
    return path


def test_a_scan_compares_the_columns_that_it_reads(file: str) -> None:
    fields = [pa.field("id", pa.int32())]
    assert [len(places) for places, _ in FileScan(LOCAL, fields, {}).rows(file, NOTHING)] == [1]

    wrong = [*fields, pa.field("s", struct(a=pa.int64(), b=pa.int32()))]
    with pytest.raises(NotSupportedError) as raised, reading_file(file):
        list(FileScan(LOCAL, [*fields, pa.field("n", pa.int32())], {}).rows(file, NOTHING))
    assert f"{file} has no column n" in raised.value.message
    with pytest.raises(OtherColumnsError, match=r"has no column s\.b"):
        list(FileScan(LOCAL, wrong, {}).rows(file, NOTHING))


@pytest.mark.parametrize("column", [("n", pa.int32()), ("id", pa.int64())])
def test_a_rewrite_compares_all_columns(tmp_path: Path, column: tuple[str, pa.DataType]) -> None:
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "other": ["x"]}), source)
    columns = pa.schema([column, ("other", pa.string())])
    changes = update("other", {0: "y"}, pa.string())

    with pytest.raises(NotSupportedError) as raised:
        rewrite(LOCAL, str(source), str(target), changes, Compression(), columns=columns)

    assert str(source) in raised.value.message
    assert not target.exists()


@pytest.mark.parametrize("largest", [2**63 - 1, 2**64 - 1])
def test_a_key_among_unsigned_numbers(tmp_path: Path, largest: int) -> None:
    path = str(tmp_path / "data-1.parquet")
    pq.write_table(pa.table({"n": pa.array([1, largest, 7], pa.uint64())}), path)
    scan = FileScan(LOCAL, [pa.field("n", pa.int64())], {"n": KeyProbe(pa.array([5, 7]))})

    with contextlib.ExitStack() as stack:
        if largest > 2**63:
            stack.enter_context(pytest.raises(NotSupportedError, match="18446744073709551615"))
        with reading_file(path):
            found = [each.to_pylist() for _, each in scan.rows(path, NOTHING)]
            assert found == [[{"n": 7}]]
