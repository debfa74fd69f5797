"""Updates of tables with data evolution are files of the assigned columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.paimon.read.planning import range_files
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from tests.connectors.paimon.evolution.evolving import (
    EVOLVING,
    VECTORS,
    Update,
    column_files,
    filled,
    update,
)
from tests.support.append_checker import problems_of
from tests.support.direct_merges import live_rows
from tests.support.paimon_tables import NAME, append_with_pypaimon, create, data_files, read


def values(connector: Connector, *columns: str) -> list[tuple[object, ...]]:
    """Columns of all rows, as this project reads them, by id; pypaimon reads the same."""
    table = connector.metadata.load_table(NAME)
    ours = [{n: row[n] for n in table.column_names} for row in live_rows(connector, table)]
    assert sorted(ours, key=repr) == read(connector)
    assert not problems_of(table.native.table)
    return [tuple(row[n] for n in columns) for row in sorted(ours, key=lambda row: row["id"])]


def test_a_file_has_the_assigned_columns_of_all_rows_of_its_range(connector: Connector) -> None:
    filled(connector)

    update(connector, {(0, 2): {"a": 70}})

    (file,) = column_files(connector)
    assert (file.write_cols, file.value_stats_cols) == (["a"], ["a"])
    assert (file.first_row_id, file.row_count, file.max_sequence_number) == (0, 4, 3)
    expected = [(0, 0), (1, 1), (2, 70), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7)]
    assert values(connector, "id", "a") == expected


def test_each_column_comes_from_the_newest_file(connector: Connector) -> None:
    filled(connector)
    update(connector, {(0, 0): {"a": 10}})
    update(connector, {(0, 1): {"a": 11, "b": "x"}})
    update(connector, {(0, 2): {"b": "y"}})

    found = values(connector, "a", "b")[:4]

    assert found == [(10, "b0"), (11, "x"), (2, "y"), (3, "b3")]
    native = connector.metadata.load_table(NAME).native
    held = [file.columns for file in range_files(native, 0)]
    assert held == [("b",), ("a", "b"), ("a",), ("id", "p", "a", "b")]


def test_clauses_may_assign_different_columns_to_rows_of_one_range(connector: Connector) -> None:
    filled(connector)
    update(connector, {(0, 0): {"a": 10}})

    both = Update(connector, {(0, 1): {"a": None, "b": "x"}})
    both.publish()

    assert values(connector, "a", "b")[:3] == [(10, "b0"), (None, "x"), (2, "b2")]


def test_ranges_are_pruned_by_the_newest_values(connector: Connector) -> None:
    filled(connector)
    update(connector, {(0, n): {"a": 100 + n} for n in range(4)})

    first, second = connector.metadata.plan_files(connector.metadata.load_table(NAME))

    assert (first.ranges["a"].minimum, first.ranges["a"].maximum) == (100, 103)
    assert (second.ranges["a"].minimum, first.ranges["id"].maximum) == (4, 3)
    assert (first.row_count, first.has_exact_count) == (4, True)


@pytest.mark.parametrize("fmt", ["parquet", "orc"])
def test_columns_of_several_older_files(connector: Connector, fmt: str) -> None:
    """They have no common row groups to copy, and may be of other formats."""
    table = create(connector, {"id": "int", "a": "int"}, (), {**EVOLVING, "file.format": fmt})
    append_with_pypaimon(table, [{"id": n, "a": n} for n in range(5)])
    update(connector, {(0, 4): {"a": 40}})

    update(connector, {(0, 0): {"id": 10, "a": 50}})

    assert values(connector, "id", "a") == [(1, 1), (2, 2), (3, 3), (4, 40), (10, 50)]


def test_chunks_of_row_groups_without_changes_are_copied(
    connector: Connector, warehouse: Path
) -> None:
    table = create(connector, {"id": "int", "a": "int", "b": "string"}, (), EVOLVING)
    append_with_pypaimon(table, [{"id": n, "a": n, "b": f"text {n}"} for n in range(300)])
    native = connector.metadata.load_table(NAME).native
    path, _ = native.files.located_entries[0]
    content = pq.ParquetFile(path).read()
    # The same file in row groups; manifests do not know of them.
    pq.write_table(content, path, row_group_size=100, compression="zstd", store_schema=False)
    size = Path(path).stat().st_size
    entry = native.files.located_entries[0][1]
    entry.file.file_size = size

    update(connector, {(0, 150): {"b": "new"}})

    (file,) = column_files(connector)
    (written,) = warehouse.rglob(file.file_name)
    old, new = pq.ParquetFile(path), pq.ParquetFile(written)
    assert new.schema_arrow.names == ["b"]
    assert new.read().column("b").to_pylist()[150] == "new"
    assert new.metadata.num_row_groups == 3
    for group in (0, 2):
        before, after = old.metadata.row_group(group).column(2), new.metadata.row_group(group)
        assert pages(path, before) == pages(str(written), after.column(0))


def pages(path: str, chunk: pq.ColumnChunkMetaData) -> bytes:
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    with Path(path).open("rb") as file:
        file.seek(start)
        return file.read(chunk.total_compressed_size)


def test_an_unpublished_statement_changes_nothing(connector: Connector, warehouse: Path) -> None:
    """A driver that dies between the files and the snapshot; its retry does the work."""
    filled(connector)
    before, files = values(connector, "id", "a", "b"), data_files(warehouse)
    dead = Update(connector, {(0, 2): {"a": 70}})
    assert len(data_files(warehouse)) == len(files) + 1
    assert values(connector, "id", "a", "b") == before

    update(connector, {(0, 2): {"a": 70}})

    assert values(connector, "a")[2] == (70,)
    dead.connector.writes.abort_merge(dead.table, dead.handle)
    assert len(data_files(warehouse)) == len(files) + 1


def test_deleted_rows_are_marked_at_the_anchor(connector: Connector) -> None:
    filled(connector, VECTORS)
    update(connector, {(0, 1): {"a": 10}})

    Update(connector, {(0, 1): {}, (1, 0): {}}, operation=rows.DELETE).publish()
    update(connector, {(0, 2): {"a": 20}})

    found = [(0, 0), (2, 20), (3, 3), (5, 5), (6, 6), (7, 7)]
    assert values(connector, "id", "a") == found
    native = connector.metadata.load_table(NAME).native
    anchors = {native.files.unit_entries(ordinal)[0].file.file_name for ordinal in range(2)}
    assert native.files.vectors.keys() == anchors


def test_a_range_without_rows_is_removed(connector: Connector) -> None:
    filled(connector, VECTORS)
    update(connector, {(0, 1): {"a": 10}})
    Update(connector, {(0, 1): {}}, operation=rows.DELETE).publish()

    Update(connector, {(0, n): {} for n in (0, 2, 3)}, operation=rows.DELETE).publish()

    assert values(connector, "id") == [(4,), (5,), (6,), (7,)]
    native = connector.metadata.load_table(NAME).native
    assert (len(native.files.units), len(native.files.located_entries), native.files.vectors) == (
        1,
        1,
        {},
    )
    assert native.snapshot.next_row_id == 8


def test_read_row_finds_columns_of_all_files(connector: Connector) -> None:
    filled(connector)
    update(connector, {(0, 2): {"a": 70}})
    begun = Update(connector, {(0, 2): {"b": "x"}})

    row = begun.handle.sinks.open("task").read_row({"file": 0, "position": 2}, ["id", "a", "b"])

    assert row == {"id": 2, "a": 70, "b": "b2"}


def test_types_of_the_files_columns(connector: Connector, warehouse: Path) -> None:
    filled(connector)
    update(connector, {(0, 2): {"b": "x", "a": 1}})
    (file,) = column_files(connector)
    (path,) = warehouse.rglob(file.file_name)
    assert pq.ParquetFile(path).schema_arrow.types == [pa.int32(), pa.string()]
