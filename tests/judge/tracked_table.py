"""A table that tracks rows, changed by Java and by this project.

After every step, Java's system table has the ids and sequence numbers that the model expects: a row
keeps its id until it is deleted, its number is the snapshot that changed it last, and no id comes
back.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from spark_jobs.engine.write.task_batches import insert_rows
from spark_jobs.spi import rows
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite, Operation
from tests.judge.compacted_table import NAME, CompactedTable
from tests.judge.judge import read_with_java
from tests.support.direct_merges import live_rows
from tests.support.judged_values import Row
from tests.support.paimon_tables import ROW_ID, TARGET_SIZE, change_rows, inserts, store


class Identity(NamedTuple):
    """The id of a row, and the snapshot that changed it last."""

    row_id: int
    snapshot: int


class Found(NamedTuple):
    """A live row and its new values; None: it is deleted."""

    old: Row
    new: Row | None


@dataclass
class TrackedTable(CompactedTable):
    """``ids`` are by key; ``next_id`` is the first that no row has ever had."""

    ids: dict[Any, Identity] = field(default_factory=dict)
    next_id: int = 0
    changed: set[Any] = field(default_factory=set)

    def check(self) -> None:
        """Everybody has the rows, and Java has the ids that the model expects."""
        super().check()
        found = {
            self.model.key_of(row): Identity(row["_ROW_ID"], row["_SEQUENCE_NUMBER"])
            for row in read_with_java(self.warehouse.path, str(NAME), tracked=True)
        }
        assert len(found) == len(self.model.rows), self.text
        assert len({each.row_id for each in found.values()}) == len(found), (found, self.text)
        snapshot = self.snapshot
        for key, identity in found.items():
            old = self.ids.get(key)
            if old is None:
                new = range(self.next_id, snapshot.next_row_id)
                assert identity.row_id in new, (key, identity, new, self.text)
                assert identity.snapshot == snapshot.id, (key, identity, self.text)
                continue
            number = snapshot.id if key in self.changed else old.snapshot
            assert identity == Identity(old.row_id, number), (key, old, identity, self.text)
        self.ids, self.next_id, self.changed = found, snapshot.next_row_id, set()

    def merge(self) -> None:
        """A statement that updates, moves, deletes and inserts rows."""
        source = {self.model.key_of(row): row for row in self.some_rows(9)}
        assigned = self.rng.sample(["a", "b", "c", "seq"], 2)
        moves = self.rng.random() < 0.3
        if moves:
            assigned.append("part")
        found, new = [], []
        table = self.connector.metadata.load_table(NAME)
        old = {self.model.key_of(row): row for row in live_rows(self.connector, table)}
        for key, row in zip(source, self.typed(source.values()), strict=True):
            if key not in old:
                new.append(row)
            elif row["seq"] % 4 == 0:
                found.append(Found(old[key], None))
            else:
                found.append(Found(old[key], {**old[key], **{n: row[n] for n in assigned}}))
        self._publish(table, found, new, assigned, moves=moves and self.kind.partitioned)
        for key, row in source.items():
            known = self.model.rows.get(key)
            if known is None:
                self.model.stored(row)
            elif row["seq"] % 4 == 0:
                self.model.deleted(key)
                del self.ids[key]
            else:
                self.model.stored({**known, **{name: row[name] for name in assigned}})
                self.changed.add(key)
        self.note(f"merge sets {assigned}: {list(source.values())}")

    def overwrite(self) -> None:
        """All files go, and other rows come; some with keys that rows had."""
        source = self.some_rows(4)
        self._write(lambda table: self.typed(source), drops=True)
        self.model.rows.clear()
        self.ids.clear()
        for row in source:
            self.model.stored(row)
        self.note(f"overwrite with {source}")

    def insert(self) -> None:
        """New rows in files without ids."""
        source = self.some_rows(4, new=True)
        if not source:
            return
        self._write(lambda table: self.typed(source), drops=False)
        for row in source:
            self.model.stored(row)
        self.note(f"insert {source}")

    def delete_by_java(self) -> None:
        """Java's vectors."""
        super().delete_by_java()
        self.ids = {key: each for key, each in self.ids.items() if key in self.model.rows}

    def _write(self, rows_of: Callable[[TableHandle], list[Row]], *, drops: bool) -> None:
        connector = self.connector
        table = connector.metadata.load_table(NAME)
        files = connector.metadata.plan_files(table)
        write = MergeWrite(_operation(), files, ((),), (), TARGET_SIZE, overwrites=drops)
        handle = connector.writes.begin_merge(table, write)
        fragments = connector.writes.drop_files(table, handle, files) if drops else []
        fragments += store(handle, inserts(table, rows_of(table)), task=uuid.uuid4().hex)
        connector.writes.finish_merge(table, handle, fragments, {})
        connector.writes.release_guard(table, write.operation.operation_id)

    def _publish(
        self,
        table: TableHandle,
        found: Iterable[Found],
        new: list[Row],
        assigned: list[str],
        *,
        moves: bool,
    ) -> None:
        """Store the changes as a sink task gets them: by file and position, then new rows."""
        connector = self.connector
        changed = sorted(found, key=lambda each: (each.old["file"], each.old["position"]))
        if not changed and not new:
            return
        share = self.rng.choice((None, 0.0, 0.5, 1.0)) if table.native.marks_rows else None
        files = connector.metadata.plan_files(table)
        write = MergeWrite(
            _operation(), files, (tuple(assigned), ()), (), TARGET_SIZE, rewrite_share=share
        )
        handle = connector.writes.begin_merge(table, write)
        batches = []
        for old, row in changed:
            if row is None or moves:
                batches.append(change_rows(table, rows.DELETE, [old], case=1))
            else:
                batches.append(change_rows(table, rows.UPDATE, [row]))
        moved = [row for _, row in changed if row is not None] if moves else []
        if new or moved:
            batches.append(_new_and_moved(table, new, moved))
        fragments = store(handle, *batches, task=uuid.uuid4().hex)
        fragments = _repacked(connector, table, handle, fragments)
        connector.writes.finish_merge(table, handle, fragments, {})
        connector.writes.release_guard(table, write.operation.operation_id)


def _new_and_moved(table: TableHandle, new: list[Row], moved: list[Row]) -> pa.RecordBatch:
    """INSERT rows; those that are moved tell where from."""
    batch = inserts(table, [*new, *moved])
    places = {row["id"]: {n: row[n] for n in ("file", "position")} for row in moved}
    origins = [places.get(key) for key in batch.column("id").to_pylist()]
    nothing = pa.nulls(len(origins), ROW_ID)
    columns = {name: batch.column(name) for name in batch.schema.names}
    columns |= {rows.ROW_ID: nothing, rows.MOVED_FROM: pa.array(origins, ROW_ID)}
    return pa.RecordBatch.from_pydict(columns)


def _repacked(connector: Any, table: Any, handle: Any, fragments: list[Fragment]) -> list[Fragment]:
    """The fragments, with new files put together as the engine does it."""
    plan = connector.writes.repacking(table, handle, fragments)
    if plan is None:
        return fragments
    replaced = {index for group in plan.groups for index in group}
    kept = [each for index, each in enumerate(fragments) if index not in replaced]
    for group in plan.groups:
        batches = plan.reader.read([plan.parts[index] for index in group])
        kept += store(handle, *map(insert_rows, batches), task=uuid.uuid4().hex)
    connector.writes.discard(handle, [fragments[index] for index in sorted(replaced)])
    return kept


def _operation() -> Operation:
    return Operation(f"statement-{uuid.uuid4().hex}", "digest", {})
