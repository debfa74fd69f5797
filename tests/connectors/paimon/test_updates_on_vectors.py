"""Updates in tables with deletion vectors: the old row is marked, its new version appended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema import Schema
from pypaimon.schema.schema_change import SchemaChange

from spark_jobs.connectors.paimon.write.sink import (
    SmallFile,
    SmallFilesReader,
    new_file,
    place_of,
)
from spark_jobs.connectors.shared.write.new_rows import small_files
from spark_jobs.datafiles.file_changes import ColumnChange, FileChanges
from spark_jobs.datafiles.updated_rows import updated_rows
from spark_jobs.errors import CatalogError, DataError, ErrorCode
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.writes import Fragment
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    begin,
    change_rows,
    create,
    inserts,
    merge,
    read,
    schema_of,
    store,
)

VECTORS = {"deletion-vectors.enabled": "true"}
COLUMNS = {"id": "int", "name": "string", "tags": "array<int>", "p": "int"}


def value(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"n{number}", "tags": [number, None], "p": number // 20}


def filled(connector: Connector, options: Mapping[str, str] = VECTORS) -> None:
    """Ids 0 to 19 in partition 0, 20 to 39 in partition 1."""
    create(connector, COLUMNS, ["p"], options)
    append(connector, [value(i) for i in range(40)])


def update(
    connector: Connector, *values: Mapping[str, Any], columns: tuple[str, ...] = ("name",)
) -> list[Fragment]:
    """One statement that sets ``columns`` of rows given by ``file`` and ``position``."""
    table = connector.metadata.load_table(NAME)
    handle = begin(connector, table, f"update-{table.snapshot_id}", (columns,))
    fragments = store(handle, change_rows(table, rows.UPDATE, values))
    connector.writes.finish_merge(table, handle, fragments, {})
    return fragments


def at(file: int, position: int, **values: Any) -> dict[str, Any]:
    return {"file": file, "position": position, **values}


def files(connector: Connector) -> list[tuple[str, int, int]]:
    """Directory, rows and marked rows of every file."""
    planned = connector.metadata.plan_files(connector.metadata.load_table(NAME))
    return sorted((f.path.split("/")[-3], f.row_count, f.deleted_row_count) for f in planned)


def by_id(connector: Connector) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in read(connector)}


def test_the_row_is_marked_and_its_new_version_is_appended(connector: Connector) -> None:
    filled(connector)

    fragments = update(connector, at(0, 1, name="A"), at(0, 4, name=None), at(1, 0, name="B"))

    found = by_id(connector)
    assert len(read(connector)) == len(found) == 40
    assert found[1] == {**value(1), "name": "A"}
    assert found[4] == {**value(4), "name": None}
    assert found[20] == {**value(20), "name": "B"}
    assert {i: found[i] for i in range(40) if i not in (1, 4, 20)} == {
        i: value(i) for i in range(40) if i not in (1, 4, 20)
    }
    assert files(connector) == [("p=0", 2, 0), ("p=0", 20, 2), ("p=1", 1, 0), ("p=1", 20, 1)]
    assert sum(each.files_rewritten for each in fragments) == 0
    assert sum(each.files_added for each in fragments) == 2


def test_marked_rows_stay_marked_and_rows_may_be_updated_again(connector: Connector) -> None:
    filled(connector)
    update(connector, at(0, 1, name="A"))
    table = connector.metadata.load_table(NAME)
    planned = connector.metadata.plan_files(table)
    old = next(f.ordinal for f in planned if f.deleted_row_count)
    new = next(f.ordinal for f in planned if f.row_count == 1)

    again = sorted([at(old, 2, name="C"), at(new, 0, name="B")], key=lambda each: each["file"])
    update(connector, *again)

    found = by_id(connector)
    assert (len(read(connector)), found[1]["name"], found[2]["name"]) == (40, "B", "C")


def test_several_cases_and_deletes_in_one_file(connector: Connector) -> None:
    filled(connector)
    table = connector.metadata.load_table(NAME)
    handle = begin(connector, table, assigned=(("name",), ("tags",), (), ("name", "tags")))
    values = [
        (rows.UPDATE, 0, at(0, 0, name="A", tags=[9])),
        (rows.DELETE, 2, at(0, 1)),
        (rows.UPDATE, 1, at(0, 2, name="ignored", tags=None)),
        (rows.UPDATE, 3, at(0, 3, name="D", tags=[7])),
        (rows.UPDATE, 0, at(0, 19, name="Z")),
    ]

    batches = [change_rows(table, kind, [each], case) for kind, case, each in values]
    connector.writes.finish_merge(table, handle, store(handle, *batches), {})

    found = by_id(connector)
    assert found[0] == {**value(0), "name": "A"}
    assert found[2] == {**value(2), "tags": None}
    assert found[3] == {**value(3), "name": "D", "tags": [7]}
    assert found[19] == {**value(19), "name": "Z"}
    assert found.keys() == set(range(40)) - {1}
    assert len(read(connector)) == 39


def test_above_the_share_the_file_is_rewritten_in_place(connector: Connector) -> None:
    filled(connector, {**VECTORS, "merge.deletion-vectors.rewrite-share": "0.1"})

    fragments = update(connector, at(0, 1, name="A"), at(1, 1, name="B"), at(1, 2), at(1, 3))

    found = by_id(connector)
    assert (len(found), found[1]["name"], found[21]["name"]) == (40, "A", "B")
    assert files(connector) == [("p=0", 1, 0), ("p=0", 20, 1), ("p=1", 20, 0)]
    assert sum(each.files_rewritten for each in fragments) == 1


def test_a_file_whose_rows_are_all_updated_is_rewritten(connector: Connector) -> None:
    filled(connector, {**VECTORS, "merge.deletion-vectors.rewrite-share": "1"})

    update(connector, *(at(0, i, name="A") for i in range(20)))

    assert files(connector) == [("p=0", 20, 0), ("p=1", 20, 0)]
    assert [row["name"] for row in read(connector)].count("A") == 20


def test_new_versions_stay_in_their_bucket_and_follow_its_files(connector: Connector) -> None:
    create(connector, COLUMNS, ["p"], {**VECTORS, "bucket": "3", "bucket-key": "id"})
    append(connector, [value(i) for i in range(40)])
    table = connector.metadata.load_table(NAME)
    before = dict(table.native.files.located_entries)

    update(connector, *(at(f.ordinal, 0, name="A") for f in connector.metadata.plan_files(table)))

    after = connector.metadata.load_table(NAME).native.files.located_entries
    new = [(path, entry) for path, entry in after if path not in before]
    assert len(new) == len(before)
    for path, entry in new:
        (old,) = [e for p, e in before.items() if p.rsplit("/", 1)[0] == path.rsplit("/", 1)[0]]
        assert (entry.bucket, entry.partition.values) == (old.bucket, old.partition.values)
        assert entry.file.min_sequence_number == old.file.max_sequence_number + 1
    assert len(read(connector)) == 40
    assert [row["name"] for row in read(connector)].count("A") == len(before)


def test_new_rows_and_new_versions_of_a_task(connector: Connector) -> None:
    filled(connector)
    table = connector.metadata.load_table(NAME)

    merge(
        connector,
        table,
        change_rows(table, rows.UPDATE, [at(0, 5, name="A"), at(1, 5, name="B")]),
        inserts(table, [value(100), {**value(101), "p": None}, {**value(102), "p": 1}]),
        assigned=(("name",),),
    )

    found = by_id(connector)
    assert (len(read(connector)), found[5]["name"], found[25]["name"]) == (43, "A", "B")
    assert found[101]["p"] is None


def _alter(connector: Connector, *changes: Any) -> None:
    connector.metadata._catalog.alter_table(str(NAME), list(changes), False)  # type: ignore[attr-defined]


@pytest.mark.parametrize("format_", ["parquet", "orc", "avro"])
def test_files_of_an_older_schema_and_of_other_formats(
    connector: Connector, warehouse: Path, format_: str
) -> None:
    create(connector, COLUMNS, ["p"], {**VECTORS, "file.format": format_})
    # pypaimon writes no Avro arrays with NULL.
    values = [{**value(i), "tags": [i]} for i in range(20)]
    append_with_pypaimon(connector.metadata.load_table(NAME), values)
    (path,) = [p for p in warehouse.rglob("data-*") if p.is_file()]
    assert path.suffix == f".{format_}"
    _alter(
        connector,
        SchemaChange.add_column("more", AtomicType("INT")),
        SchemaChange.rename_column("name", "title"),
        SchemaChange.update_column_type("id", AtomicType("BIGINT")),
    )

    update(connector, at(0, 3, more=3), at(0, 4, more=4), columns=("more",))

    found = by_id(connector)
    assert len(read(connector)) == 20
    assert found[3] == {"id": 3, "title": "n3", "tags": [3], "p": 0, "more": 3}
    assert found[5] == {"id": 5, "title": "n5", "tags": [5], "p": 0, "more": None}
    assert schema_of(connector.metadata.load_table(NAME)).field("id").type == pa.int64()


def test_files_outside_the_table(connector: Connector, warehouse: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    option = "data-file.external-paths"
    places = {option: f"file://{outside}", f"{option}.strategy": "round-robin"}
    filled(connector, {**VECTORS, **places})

    update(connector, at(0, 1, name="A"))

    assert by_id(connector)[1] == {**value(1), "name": "A"}
    assert len(list(outside.rglob("*.parquet"))) == 3
    assert not list(warehouse.rglob("*.parquet"))


def test_nanoseconds_of_unassigned_columns_stay(connector: Connector) -> None:
    fields = [("id", pa.int32()), ("at", pa.timestamp("ns")), ("name", pa.string())]
    create(connector, {"id": "int"}, name=type(NAME)("shop", "other"))
    schema = Schema.from_pyarrow_schema(pa.schema(fields), options=VECTORS)
    connector.metadata._catalog.create_table(str(NAME), schema, False)  # type: ignore[attr-defined]
    times = np.array([1_700_000_000_123_456_789 + i for i in range(20)], "datetime64[ns]")
    table = connector.metadata.load_table(NAME)
    builder = table.native.table.new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    values = [pa.array(range(20), pa.int32()), pa.array(times), pa.array(["n"] * 20)]
    write.write_arrow(pa.Table.from_arrays(values, schema=schema_of(table)))
    commit.commit(write.prepare_commit())

    update(connector, at(0, 7, name="A"))

    builder = connector.metadata.load_table(NAME).native.table.new_read_builder()
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    order = found.column("id").to_numpy().argsort()
    assert (found.column("at").to_numpy()[order] == times).all()
    assert found.column("name").take(order).to_pylist() == ["n"] * 7 + ["A"] + ["n"] * 12


def test_a_null_that_is_older_than_its_not_null_is_named(connector: Connector) -> None:
    create(connector, {"id": "int", "name": "string"}, options=VECTORS)
    append(connector, [{"id": i, "name": None} for i in range(20)])
    _alter(connector, SchemaChange.set_option("alter-column-null-to-not-null.disabled", "false"))
    _alter(connector, SchemaChange.update_column_nullability("name", False))

    with pytest.raises(DataError, match="Column name must not be NULL") as raised:
        update(connector, at(0, 1, id=1), columns=("id",))

    assert raised.value.code is ErrorCode.NOT_NULL_VIOLATION
    update(connector, at(0, 0, name="fine"), columns=("name",))
    assert by_id(connector)[0] == {"id": 0, "name": "fine"}


def test_a_position_beyond_the_file_is_damage(connector: Connector) -> None:
    filled(connector)

    with pytest.raises(CatalogError, match="none at position 99") as raised:
        update(connector, at(0, 99, name="A"))

    assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE


def test_assigned_columns_are_not_read(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int32()), ("b", pa.string())])
    values = {
        "a": ColumnChange(np.array([0, 2]), pa.array([1, 2], pa.int32())),
        "b": ColumnChange(np.array([0, 2]), pa.array(["x", "y"])),
    }
    changes = FileChanges(np.array([3, 5, 9]), np.array([False, True, False]), values)

    (found,) = updated_rows(pafs.LocalFileSystem(), str(tmp_path / "missing"), changes, schema)

    assert found.to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    more = schema.append(pa.field("c", pa.int32()))
    with pytest.raises(CatalogError, match="it is missing"):
        list(updated_rows(pafs.LocalFileSystem(), str(tmp_path / "missing"), changes, more))


def _tasks(connector: Connector, count: int) -> Iterator[list[Fragment]]:
    """What ``count`` sink tasks of one statement leave, which update a row of each partition."""
    table = connector.metadata.load_table(NAME)
    handle = begin(connector, table, assigned=(("name",),))
    for number in range(count):
        values = [at(0, number, name="A"), at(1, number, name="B")]
        batch = change_rows(table, rows.UPDATE, values)
        yield store(handle, batch, task=f"task-{number}")


def test_only_too_many_new_files_are_grouped_by_bucket(connector: Connector) -> None:
    filled(connector)
    fragments = [each for task in _tasks(connector, 5) for each in task]
    added = [n for n, each in enumerate(fragments) if each.files_added]
    size = max(fragments[n].bytes_added for n in added)

    assert small_files(fragments[: added[3] + 1], 10**9, place_of) == []
    assert sorted(sorted(group) for group in small_files(fragments, 10**9, place_of)) == [
        added[::2],
        added[1::2],
    ]
    assert small_files(fragments, size, place_of) == []
    assert {len(group) for group in small_files(fragments, 3 * size, place_of)} == {2, 3}


def test_the_rows_of_new_files_are_read_as_they_are(connector: Connector) -> None:
    filled(connector)
    fragments = [each for task in _tasks(connector, 2) for each in task]
    parts = [new_file(each) for each in fragments if each.files_added]
    schema = schema_of(connector.metadata.load_table(NAME))

    found = pa.Table.from_batches(SmallFilesReader(pafs.LocalFileSystem(), schema).read(parts))

    assert parts[0] == SmallFile(parts[0].path, 0, stores_ids=False)
    expected = [{**value(i), "name": "A" if i < 20 else "B"} for i in (0, 20, 1, 21)]
    assert found.select(schema.names).to_pylist() == expected
