"""Tables with data evolution for the connector's tests, without Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pypaimon.globalindex.global_index_meta import GlobalIndexMeta
from pypaimon.index.index_file_meta import IndexFileMeta
from pypaimon.manifest.index_manifest_entry import IndexManifestEntry

from spark_jobs.connectors.paimon.commit.new_snapshot import Change, Commit, SnapshotWriter
from spark_jobs.connectors.paimon.format.manifest_entries import ADD
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite, Operation
from tests.support.paimon_tables import NAME, append, change_rows, create, store

EVOLVING = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
VECTORS = {**EVOLVING, "deletion-vectors.enabled": "true"}
COLUMNS = {"id": "int", "p": "int", "a": "int", "b": "string"}


def filled(
    connector: Connector, options: Mapping[str, str] = EVOLVING, keys: Sequence[str] = ("p",)
) -> TableHandle:
    """Ids 0 to 3 in a range of the partition 0, and 4 to 7 in one of the partition 1."""
    create(connector, COLUMNS, keys, options)
    values = [{"id": n, "p": n // 4, "a": n, "b": f"b{n}"} for n in range(8)]
    append(connector, values[:4], "first")
    append(connector, values[4:], "second")
    return connector.metadata.load_table(NAME)


class Update:
    """A statement that has begun; it sets columns of the rows at places (range, position)."""

    def __init__(
        self,
        connector: Connector,
        values: Mapping[tuple[int, int], Mapping[str, Any]],
        *,
        operation: int = rows.UPDATE,
        reads: frozenset[str] | None = None,
        isolation: Any = "serializable",
        read_set: Callable[..., Any] | None = None,
    ) -> None:
        self.connector = connector
        self.table = connector.metadata.load_table(NAME)
        assigned = tuple(dict.fromkeys(n for each in values.values() for n in each))
        self.name = f"update-{'-'.join(assigned)}-{id(self)}"
        more = {} if read_set is None else {"read_set": read_set}
        write = MergeWrite(
            Operation(self.name, "digest", {}),
            connector.metadata.plan_files(self.table),
            (assigned,),
            (),
            2**27,
            isolation=isolation,
            read_columns=reads,
            **more,
        )
        self.handle: MergeHandle = connector.writes.begin_merge(self.table, write)
        changed = [
            {"file": file, "position": position, **each}
            for (file, position), each in sorted(values.items())
        ]
        batch = change_rows(self.table, operation, changed)
        self.fragments: list[Fragment] = store(self.handle, batch)

    def publish(self) -> None:
        """Publish it, or raise the conflict; nothing of it is left then."""
        writes = self.connector.writes
        try:
            writes.finish_merge(self.table, self.handle, self.fragments, {})
        except BaseException:
            writes.abort_merge(self.table, self.handle)
            raise
        finally:
            writes.release_guard(self.table, self.name)


def update(connector: Connector, values: Mapping[tuple[int, int], Mapping[str, Any]]) -> None:
    """A whole statement."""
    Update(connector, values).publish()


def column_files(connector: Connector) -> list[Any]:
    """The manifest's descriptions of files of columns, the oldest first."""
    native = connector.metadata.load_table(NAME).native
    found = [entry.file for _, entry in native.files.located_entries if entry.file.write_cols]
    return sorted(found, key=lambda file: file.max_sequence_number)


def commit_copy(connector: Connector, ordinal: int, **changes: Any) -> str:
    """Publish another entry for the anchor of a range, with ``changes``; return its file's name.

    The file is a copy, so that everything but the entry is right.
    """
    native = connector.metadata.load_table(NAME).native
    path, entry = native.files.located_entries[native.files.units[ordinal].files[0]]
    name = changes.setdefault("file_name", f"copy-{native.snapshot.id}.parquet")
    shutil.copyfile(path, f"{path.rpartition('/')[0]}/{name}")
    sequence = {"min_sequence_number": 0, "max_sequence_number": 0}
    file = replace(entry.file, **{**sequence, **changes})
    added = replace(entry, kind=ADD, file=file)
    new_snapshot = SnapshotWriter(native, Commit("another writer", 1, {})).write(
        Change([added], [], [], overwrites=False), native.snapshot
    )
    assert connector.writes._snapshots.publish(native, new_snapshot)  # type: ignore[attr-defined]
    return str(name)


def commit_index(connector: Connector) -> None:
    """Publish a global index of the column a: its manifest entry, without the file."""
    native = connector.metadata.load_table(NAME).native
    anchor = native.files.unit_entries(0)[0]
    about = GlobalIndexMeta(0, 3, native.table.table_schema.fields[2].id)
    index = IndexFileMeta("btree", "global-index-1", 1, 4, global_index_meta=about)
    entry = IndexManifestEntry(ADD, anchor.partition, 0, index)
    new_snapshot = SnapshotWriter(native, Commit("another writer", 2, {})).write(
        Change([], [entry], [], overwrites=False), native.snapshot
    )
    assert connector.writes._snapshots.publish(native, new_snapshot)  # type: ignore[attr-defined]
