"""Deletion vectors on real tables: marked rows are gone for pypaimon, files and vectors in step."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from fsspec.implementations.local import LocalFileSystem

from spark_jobs.connectors.paimon.format.vectors import (
    VectorIndexWriter,
    VectorLocation,
    copied_index,
    read_vector,
)
from spark_jobs.connectors.paimon.table.table_handle import pinned_table
from spark_jobs.errors import CatalogError, ErrorCode, JobError, NotSupportedError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import RowChangeParadigm, TableHandle
from tests.support.paimon_tables import (
    NAME,
    append,
    begin,
    change_rows,
    create,
    data_files,
    inserts,
    read,
    store,
)

COLUMNS = {"id": "int", "name": "string", "p": "int"}
ENABLED = {"deletion-vectors.enabled": "true"}


def filled(connector: Connector, options: dict[str, str] = ENABLED) -> TableHandle:
    """Three files of ten rows: ids 0 to 9 in partition 0, 10 to 19 in 1, 20 to 29 in 2."""
    create(connector, COLUMNS, ["p"], options)
    values = [{"id": 10 * p + i, "name": f"n{i}", "p": p} for p in range(3) for i in range(10)]
    append(connector, values)
    return connector.metadata.load_table(NAME)


def delete(
    connector: Connector, operation_id: str, at: dict[int, list[int]], *tasks: dict[int, list[int]]
) -> None:
    """Delete rows, by file and positions; each further argument is a sink task of its own."""
    table = connector.metadata.load_table(NAME)
    handle = begin(connector, table, operation_id)
    fragments = []
    for number, files in enumerate((at, *tasks)):
        values = [{"file": f, "position": i} for f, places in files.items() for i in places]
        batch = change_rows(table, rows.DELETE, values)
        fragments += store(handle, batch, task=f"task-{number}")
    connector.writes.finish_merge(table, handle, fragments, {})


def ids(connector: Connector) -> set[int]:
    return {row["id"] for row in read(connector)}


def vectors(connector: Connector) -> dict[int, int]:
    """Deleted rows that vectors mark, by file."""
    planned = connector.metadata.plan_files(connector.metadata.load_table(NAME))
    return {f.ordinal: f.deleted_row_count for f in planned if f.deleted_row_count}


def index_files(connector: Connector) -> list[Path]:
    return [
        Path(f.path) for f in pinned_table(connector.metadata.load_table(NAME)).files.index_files
    ]


def test_deleted_rows_are_marked_and_no_data_file_is_written(
    connector: Connector, warehouse: Path
) -> None:
    table = filled(connector)
    before = data_files(warehouse)

    delete(connector, "one", {0: [1, 3], 2: [9]})

    assert connector.metadata.row_change_paradigm(table) is (
        RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS
    )
    assert ids(connector) == set(range(30)) - {1, 3, 29}
    assert vectors(connector) == {0: 2, 2: 1}
    assert data_files(warehouse) == before


def test_vectors_grow_and_those_of_other_files_stay(connector: Connector) -> None:
    filled(connector)
    delete(connector, "one", {0: [1], 1: [0]})

    delete(connector, "two", {0: [0]})

    assert vectors(connector) == {0: 2, 1: 1}
    assert ids(connector) == set(range(30)) - {0, 1, 10}


def test_an_index_file_is_replaced_and_its_other_vectors_are_copied(connector: Connector) -> None:
    create(connector, {"id": "int", "p": "int"}, ["p"], ENABLED)
    for first in (0, 10, 20):
        append(connector, [{"id": first + i, "p": 0} for i in range(10)], f"append-{first}")
    delete(connector, "one", {0: [1], 1: [1], 2: [1]})
    (before,) = index_files(connector)

    delete(connector, "two", {0: [2]}, {2: [2]})

    assert vectors(connector) == {0: 2, 1: 1, 2: 2}
    assert len(read(connector)) == 25
    after = index_files(connector)
    assert before not in after
    assert len(after) == 3


class _Counting(pafs.FSSpecHandler):  # type: ignore[misc]
    """The local file system; ``opened`` counts the openings of each file to read it."""

    def __init__(self) -> None:
        super().__init__(LocalFileSystem(auto_mkdir=True))
        self.opened: Counter[str] = Counter()

    def open_input_file(self, path: str) -> pa.NativeFile:
        self.opened[path] += 1
        return super().open_input_file(path)


def test_an_index_file_is_opened_once_however_many_vectors_are_copied(tmp_path: Path) -> None:
    handler = _Counting()
    filesystem = pafs.PyFileSystem(handler)
    deleted, locations = {}, {}
    for bucket in range(3):
        writer = VectorIndexWriter(filesystem, str(tmp_path), lambda f, b=bucket: f"{f}/old-{b}")  # type: ignore[misc]
        for number in range(20):
            deleted[100 * bucket + number] = np.arange(number, 1000 + bucket)
            writer.add(100 * bucket + number, bucket, "", deleted[100 * bucket + number])
        (index,) = writer.finish()
        locations |= {
            str(ordinal): VectorLocation(index.path, *where)
            for ordinal, where in index.vectors.items()
            if ordinal % 7
        }
    target = str(tmp_path / "new")

    size, ranges = copied_index(filesystem, target, locations)

    assert handler.opened == {str(tmp_path / f"old-{bucket}"): 1 for bucket in range(3)}
    assert size == Path(target).stat().st_size
    assert list(ranges) == list(locations)
    for name, where in ranges.items():
        location = VectorLocation(target, *where)
        assert np.array_equal(read_vector(filesystem, location), deleted[int(name)])


def test_an_index_file_that_ends_too_early_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(bytes(100))
    locations = {
        "a": VectorLocation(str(path), 1, 20, 1),
        "b": VectorLocation(str(path), 60, 40, 1),
    }

    with pytest.raises(CatalogError, match="ends before the deletion vector at 60") as raised:
        copied_index(pafs.LocalFileSystem(), str(tmp_path / "new"), locations)

    assert raised.value.code is ErrorCode.METADATA_UNREADABLE
    assert not (tmp_path / "new").exists()


def test_a_fixed_bucket_has_one_index_file(connector: Connector, warehouse: Path) -> None:
    create(connector, {"id": "int"}, (), {**ENABLED, "bucket": "1", "bucket-key": "id"})
    for first in (0, 10, 20):
        append(connector, [{"id": first + i} for i in range(10)], f"append-{first}")

    def on_disk() -> set[Path]:
        return {path for path in warehouse.rglob("index-*") if path.parent.name == "index"}

    delete(connector, "one", {0: [1]}, {1: [1]})
    first = index_files(connector)
    assert len(first) == 1
    assert on_disk() == set(first), "what the tasks wrote is put into one file"

    delete(connector, "two", {2: [2]})

    second = index_files(connector)
    assert len(second) == 1
    assert on_disk() == {*first, *second}
    assert vectors(connector) == {0: 1, 1: 1, 2: 1}
    assert len(read(connector)) == 27


@pytest.mark.parametrize("task_count", [1, 2])
def test_updated_rows_are_deleted_and_written_anew_in_one_snapshot(
    connector: Connector, task_count: int
) -> None:
    table = filled(connector)
    base = table.snapshot_id
    handle = begin(connector, table)
    gone = change_rows(table, rows.DELETE, [{"file": 0, "position": 4}])
    new = inserts(table, [{"id": 4, "name": "new", "p": 2}])

    fragments = (
        store(handle, gone, new)
        if task_count == 1
        else [*store(handle, gone), *store(handle, new, task="task-1")]
    )
    snapshot = connector.writes.finish_merge(table, handle, fragments, {})

    assert snapshot.snapshot_id == (base or 0) + 1
    by_id = {row["id"]: row for row in read(connector)}
    assert by_id[4] == {"id": 4, "name": "new", "p": 2}
    assert len(by_id) == 30
    assert sum(fragment.deletion_vectors_added for fragment in fragments) == 1


def test_above_the_share_a_file_is_rewritten_and_its_vector_goes(
    connector: Connector, warehouse: Path
) -> None:
    filled(connector, {**ENABLED, "merge.deletion-vectors.rewrite-share": "0.3"})
    delete(connector, "one", {0: [0, 1], 1: [5]})
    before = data_files(warehouse)

    delete(connector, "two", {0: [2, 3]})

    assert ids(connector) == set(range(30)) - {0, 1, 2, 3, 15}
    assert sum(vectors(connector).values()) == 1
    assert len(data_files(warehouse) - before) == 1


def test_a_file_without_rows_left_goes_with_its_vector(connector: Connector) -> None:
    filled(connector, {**ENABLED, "merge.deletion-vectors.rewrite-share": "1"})
    delete(connector, "one", {0: [0, 1, 2, 3], 1: [0]})

    delete(connector, "two", {0: [4, 5, 6, 7, 8, 9]})

    table = connector.metadata.load_table(NAME)
    assert ids(connector) == set(range(11, 30))
    assert [f.row_count for f in connector.metadata.plan_files(table)] == [10, 10]
    assert [
        next(iter(f.vectors.values())).cardinality for f in pinned_table(table).files.index_files
    ] == [1]


def test_a_dropped_file_takes_its_vector_along(connector: Connector) -> None:
    filled(connector)
    delete(connector, "one", {0: [0], 1: [0]})
    table = connector.metadata.load_table(NAME)
    planned = connector.metadata.plan_files(table)
    handle = begin(connector, table, "two")

    fragments = connector.writes.drop_files(table, handle, [planned[0]])
    connector.writes.finish_merge(table, handle, fragments, {})

    assert planned[0].live_row_count == 9
    assert ids(connector) == set(range(11, 30))
    assert len(pinned_table(connector.metadata.load_table(NAME)).files.vectors) == 1


def test_vectors_of_a_table_that_switched_them_off_are_refused(connector: Connector) -> None:
    filled(connector)
    delete(connector, "one", {0: [0, 1], 1: [0]})
    _alter(connector, "deletion-vectors.enabled", "false")
    table = connector.metadata.load_table(NAME)

    with pytest.raises(NotSupportedError, match=r"deletion-vectors\.enabled is not true"):
        connector.metadata.plan_files(table)


def test_vectors_can_be_switched_on_later(connector: Connector) -> None:
    filled(connector, {})
    _alter(connector, "deletion-vectors.enabled", "true")

    delete(connector, "one", {0: [0]})

    assert vectors(connector) == {0: 1}
    assert ids(connector) == set(range(1, 30))


def test_an_aborted_merge_leaves_no_index_file(connector: Connector, warehouse: Path) -> None:
    table = filled(connector)
    delete(connector, "one", {0: [0]})
    before = {path for path in warehouse.rglob("*") if path.is_file()}
    table = connector.metadata.load_table(NAME)
    handle = begin(connector, table, "two")
    store(handle, change_rows(table, rows.DELETE, [{"file": 0, "position": 1}]))

    connector.writes.abort_merge(table, handle)

    assert {path for path in warehouse.rglob("*") if path.is_file()} == before


def test_another_writers_vectors_are_a_conflict(connector: Connector) -> None:
    table = filled(connector)
    handle = begin(connector, table, "mine")
    fragments = store(handle, change_rows(table, rows.DELETE, [{"file": 0, "position": 1}]))
    delete(connector, "others", {1: [1]})

    with pytest.raises(Exception, match="COMMIT_CONFLICT"):
        connector.writes.finish_merge(table, handle, fragments, {})

    assert ids(connector) == set(range(30)) - {11}


def test_a_missing_index_manifest_is_an_error_not_a_table_without_vectors(
    connector: Connector, warehouse: Path
) -> None:
    filled(connector)
    delete(connector, "one", {0: [0]})
    (manifest,) = warehouse.rglob("index-manifest-*")
    manifest.unlink()
    table = connector.metadata.load_table(NAME)

    with pytest.raises(CatalogError) as raised:
        connector.metadata.plan_files(table)

    assert raised.value.code is ErrorCode.METADATA_UNREADABLE


def test_vectors_are_not_forgotten_when_the_index_manifest_is_gone_at_the_commit(
    connector: Connector, warehouse: Path
) -> None:
    filled(connector)
    delete(connector, "one", {0: [0]})
    table = connector.metadata.load_table(NAME)
    handle = begin(connector, table, "two")
    fragments = store(handle, change_rows(table, rows.DELETE, [{"file": 1, "position": 1}]))
    (manifest,) = warehouse.rglob("index-manifest-*")
    gone = manifest.rename(warehouse / "gone")

    with pytest.raises(JobError, match=r"index manifest .* does not exist"):
        connector.writes.finish_merge(table, handle, fragments, {})

    gone.rename(manifest)
    assert ids(connector) == set(range(30)) - {0}


def test_a_damaged_vector_fails_the_task(connector: Connector) -> None:
    filled(connector)
    delete(connector, "one", {0: [0]})
    (index,) = index_files(connector)
    content = bytearray(index.read_bytes())
    content[-1] ^= 1
    index.write_bytes(content)

    with pytest.raises(CatalogError, match="METADATA_UNREADABLE"):
        delete(connector, "two", {0: [1]})


def test_a_vector_that_deletes_more_rows_than_there_are_is_an_error(connector: Connector) -> None:
    filled(connector)
    delete(connector, "one", {0: [0]})
    table = connector.metadata.load_table(NAME)
    for _, entry in pinned_table(table).files.located_entries:
        entry.file.row_count = 0

    with pytest.raises(CatalogError, match="deletes 1 rows of 0") as raised:
        connector.metadata.plan_files(table)

    assert raised.value.code is ErrorCode.METADATA_UNREADABLE


def test_vectors_of_64_bits_are_refused_by_name(connector: Connector) -> None:
    with pytest.raises(NotSupportedError, match=r"deletion-vectors\.bitmap64"):
        create(connector, COLUMNS, [], {**ENABLED, "deletion-vectors.bitmap64": "true"})


@pytest.mark.parametrize("share", ["half", "1.5"])
def test_a_wrong_share_is_refused(connector: Connector, share: str) -> None:
    options = {**ENABLED, "merge.deletion-vectors.rewrite-share": share}

    with pytest.raises(NotSupportedError, match=rf"rewrite-share = {share} .* is not a number"):
        create(connector, COLUMNS, [], options)


def _alter(connector: Connector, option: str, value: str) -> None:
    from pypaimon.schema.schema_change import SchemaChange

    change = SchemaChange.set_option(option, value)
    connector.metadata._catalog.alter_table(str(NAME), [change], False)
