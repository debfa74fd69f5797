"""What the rewriter keeps of a file, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.file_changes import ColumnChange, FileChanges
from spark_jobs.datafiles.parquet import options
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.row_groups import read_row
from spark_jobs.errors import CatalogError, DataError, ErrorCode, InternalError

LOCAL = pafs.LocalFileSystem()


def delete(*positions: int) -> FileChanges:
    return FileChanges(np.array(positions, np.int64), np.ones(len(positions), np.bool_), {})


def update(column: str, values: dict[int, Any], kind: pa.DataType) -> FileChanges:
    positions = np.array(sorted(values), np.int64)
    rows = np.arange(len(positions))
    change = ColumnChange(rows, pa.array([values[p] for p in sorted(values)], kind))
    return FileChanges(positions, np.zeros(len(positions), np.bool_), {column: change})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def rewritten(
    folder: Path, table: pa.Table, changes: FileChanges, **options: Any
) -> tuple[pq.ParquetFile, WrittenFile]:
    pq.write_table(table, folder / "source.parquet", **options)
    target = folder / "new" / "target.parquet"
    written = rewrite(
        LOCAL, str(folder / "source.parquet"), str(target), changes, Compression("zstd", 1)
    )
    assert written is not None
    return pq.ParquetFile(target), written


def test_updates_and_deletes_of_different_cases_meet_in_one_file(folder: Path) -> None:
    table = pa.table({"id": list(range(8)), "a": ["x"] * 8, "b": [1.5] * 8})
    changes = FileChanges(
        positions=np.array([0, 3, 4, 7], np.int64),
        deleted=np.array([False, True, False, False]),
        columns={
            "a": ColumnChange(np.array([0, 3]), pa.array(["A0", "A7"])),
            "b": ColumnChange(np.array([2, 3]), pa.array([4.0, None])),
        },
    )

    file, written = rewritten(folder, table, changes, row_group_size=3)

    assert file.read().to_pylist() == [
        {"id": 0, "a": "A0", "b": 1.5},
        {"id": 1, "a": "x", "b": 1.5},
        {"id": 2, "a": "x", "b": 1.5},
        {"id": 4, "a": "x", "b": 4.0},
        {"id": 5, "a": "x", "b": 1.5},
        {"id": 6, "a": "x", "b": 1.5},
        {"id": 7, "a": "A7", "b": None},
    ]
    assert written.statistics["b"].to_json() == [{"float": (1.5).hex()}, {"float": (4.0).hex()}, 1]


def test_row_groups_keep_their_boundaries_and_empty_ones_go(folder: Path) -> None:
    file, _ = rewritten(
        folder, pa.table({"a": list(range(9))}), delete(0, 1, 2, 4), row_group_size=3
    )

    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [2, 3]


def test_a_file_that_loses_all_rows_leaves_none(folder: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), folder / "s.parquet")

    written = rewrite(
        LOCAL, str(folder / "s.parquet"), str(folder / "t.parquet"), delete(0, 1), Compression()
    )

    assert written is None
    assert not (folder / "t.parquet").exists()


def test_low_cardinality_strings_are_read_as_dictionaries_and_stay_strings(folder: Path) -> None:
    flags = [["N", "R", None, "A"][i % 4] for i in range(5000)]
    table = pa.table({"flag": flags, "id": list(range(5000))})
    pq.write_table(table, folder / "source.parquet", row_group_size=1000)
    with pq.ParquetFile(folder / "source.parquet") as source:
        names = options.low_cardinality_columns(source.metadata, source.schema_arrow)
    assert names == ["flag"]

    gone = delete(*range(0, 5000, 4))
    file, written = rewritten(folder, table, gone, row_group_size=1000)

    expected = [flag for i, flag in enumerate(flags) if i % 4]
    assert file.read().column("flag").type == pa.string()
    assert file.read().column("flag").to_pylist() == expected
    assert written.statistics["flag"].to_json() == ["A", "R", 1250]
    footer = file.metadata.row_group(0).column(0).statistics
    assert (footer.min, footer.max, footer.null_count) == ("A", "R", 250)


def test_columns_have_dictionaries_where_the_source_had(folder: Path) -> None:
    table = pa.table({"with": ["a", "b"] * 50, "without": ["a", "b"] * 50, "l": [[1]] * 100})

    file, _ = rewritten(folder, table, delete(0), use_dictionary=["with", "l.list.element"])

    group = file.metadata.row_group(0)
    assert [group.column(i).has_dictionary_page for i in range(3)] == [True, False, True]


def test_field_ids_and_required_columns_stay(folder: Path) -> None:
    field = pa.field("a", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "7"})
    element = pa.field("element", pa.int32(), metadata={"PARQUET:field_id": "536892416"})
    lists = pa.field("l", pa.list_(element), metadata={"PARQUET:field_id": "21"})
    table = pa.Table.from_arrays(
        [pa.array([1, 2]), pa.array([[1], None], pa.list_(element))],
        schema=pa.schema([field, lists]),
    )

    file, _ = rewritten(folder, table, delete(0))

    # The first line names the root of the schema, which writers choose.
    kept = str(file.schema).split("{", 1)[1]
    assert kept == str(pq.ParquetFile(folder / "source.parquet").schema).split("{", 1)[1]
    assert "required int64 field_id=7 a" in kept
    assert "field_id=536892416 element" in kept


def test_the_codec_is_the_one_asked_for_not_that_of_the_source(folder: Path) -> None:
    file, _ = rewritten(folder, pa.table({"a": [1, 2]}), delete(0), compression="snappy")

    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_nested_values_are_replaced_whole(folder: Path) -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.int32()))
    table = pa.table({"m": pa.array([[("a", [1])], None, [("b", None)]], kind)})

    file, _ = rewritten(folder, table, update("m", {1: [("c", [None, 2])], 2: None}, kind))

    assert file.read().column("m").to_pylist() == [[("a", [1])], [("c", [None, 2])], None]


def test_a_missing_required_value_names_the_column_and_leaves_no_open_file(folder: Path) -> None:
    table = pa.Table.from_arrays(
        [pa.array([1])], schema=pa.schema([pa.field("a", pa.int64(), nullable=False)])
    )

    with pytest.raises(DataError, match="Column a must not be NULL"):
        rewritten(folder, table, update("a", {0: None}, pa.int64()))


@pytest.mark.parametrize("positions", [(1, 0), (0, 0)])
def test_positions_out_of_order_are_a_defect(folder: Path, positions: tuple[int, ...]) -> None:
    with pytest.raises(InternalError, match="not ascending"):
        rewritten(folder, pa.table({"a": [1, 2]}), delete(*positions))


@pytest.mark.parametrize("position", [2, -1])
def test_positions_that_are_not_in_the_file_mean_that_it_is_damaged(
    folder: Path, position: int
) -> None:
    with pytest.raises(CatalogError, match="has 2 rows") as raised:
        rewritten(folder, pa.table({"a": [1, 2]}), delete(position))

    assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE


def test_one_row_is_read_from_its_row_group(folder: Path) -> None:
    pq.write_table(
        pa.table({"a": [1, 2, 3], "b": ["x", "y", None]}), folder / "s.parquet", row_group_size=2
    )

    assert read_row(LOCAL, str(folder / "s.parquet"), 2, ["b", "a"]) == {"b": None, "a": 3}
    with pytest.raises(CatalogError, match="has 3 rows"):
        read_row(LOCAL, str(folder / "s.parquet"), 3, ["a"])
