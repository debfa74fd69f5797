"""Rows whose columns are in several files, with row groups of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.column_files import ColumnFile, ColumnFiles
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.errors import CatalogError, ErrorCode

ROWS = 100
COLUMNS = {
    "a": pa.array(range(ROWS), pa.int32()),
    "b": pa.array([f"b{n % 7}" for n in range(ROWS)]),
    "c": pa.array([None if n % 3 else n for n in range(ROWS)], pa.int64()),
}
FIELDS = [pa.field(name, array.type) for name, array in COLUMNS.items()]
NOTHING = np.zeros(0, np.int64)


def stored(folder: Path, groups: dict[str, int], rows: int = ROWS) -> list[ColumnFile]:
    """A file for each column, in row groups of so many rows; 0: an ORC file."""
    files = []
    for name, size in groups.items():
        table = pa.table({name: COLUMNS[name].slice(0, rows)})
        path = folder / f"{name}.{'parquet' if size else 'orc'}"
        if size:
            pq.write_table(table, path, row_group_size=size)
        else:
            orc.write_table(table, str(path), stripe_size=64, row_index_stride=1000)
        files.append(ColumnFile(str(path), (name,), None))
    return files


def found(files: list[ColumnFile], deleted: np.ndarray = NOTHING, **keys: list[object]) -> pa.Table:
    """All rows that are read, with their positions."""
    probes = {name: KeyProbe(pa.array(keys[name], COLUMNS[name].type)) for name in keys}
    scan = ColumnFiles(pafs.LocalFileSystem(), files, FIELDS, probes, ROWS)
    parts = [
        table.append_column("position", pa.array(positions))
        for positions, table in scan.rows(deleted)
    ]
    return pa.concat_tables(parts) if parts else pa.table({})


def expected(positions: list[int]) -> pa.Table:
    table = pa.table(COLUMNS).append_column("position", pa.array(range(ROWS), pa.int64()))
    return table.take(pa.array(positions, pa.int64()))


@pytest.mark.parametrize(
    "groups",
    [
        {"a": 30, "b": 30, "c": 30},
        {"a": 10, "b": 100, "c": 33},
        {"a": 100, "b": 7, "c": 0},
        {"a": 0, "b": 13, "c": 40},
    ],
)
def test_rows_of_files_with_other_row_groups(tmp_path: Path, groups: dict[str, int]) -> None:
    files = stored(tmp_path, groups)
    live = [n for n in range(ROWS) if n % 4]

    assert found(files).equals(expected(list(range(ROWS))))
    deleted = np.arange(0, ROWS, 4)
    assert found(files, deleted).equals(expected(live))


@pytest.mark.parametrize("groups", [{"a": 10, "b": 100, "c": 33}, {"a": 40, "b": 0, "c": 7}])
def test_keys_may_be_in_several_files(tmp_path: Path, groups: dict[str, int]) -> None:
    files = stored(tmp_path, groups)

    of_one = found(files, c=[3, 9, 10])
    of_two = found(files, np.array([1]), a=list(range(50)), b=["b1"])

    assert of_one.equals(expected([3, 9]))
    assert of_two.equals(expected([n for n in range(50) if n % 7 == 1 and n != 1]))
    assert found(files, a=[], b=["b1"]).num_rows == 0


def test_a_column_that_no_file_has_is_null(tmp_path: Path) -> None:
    files = stored(tmp_path, {"a": 30, "b": 30})

    assert found(files).column("c").null_count == ROWS
    assert found(files, c=[3]).num_rows == 0


@pytest.mark.parametrize("short", ["a", "b"])
def test_files_of_other_lengths_are_damaged(tmp_path: Path, short: str) -> None:
    other = "b" if short == "a" else "a"
    files = sorted(
        [*stored(tmp_path, {short: 30}, rows=90), *stored(tmp_path, {other: 30})],
        key=lambda file: file.path,
    )

    with pytest.raises(CatalogError) as caught:
        found(files)

    assert caught.value.code is ErrorCode.DATA_FILE_UNREADABLE
    assert f"{short}.parquet" in caught.value.message
