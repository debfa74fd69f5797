"""A table with data evolution, changed by Java or pypaimon and by this project.

After every step, everybody has the model's rows, and their ids: a row keeps its id until it is
deleted, no id comes back, and what a statement changed has the number of its snapshot. Java 1.4
does not know such tables with deletion vectors, so that pypaimon alone judges those.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory
from pypaimon.schema.schema_change import SchemaChange

from spark_jobs.spi import rows
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import MergeWrite, Operation
from tests.judge.judge import read_with_java
from tests.judge.tracked_table import Identity, TrackedTable
from tests.judge.watched_table import NAME, WatchedTable
from tests.support.direct_merges import live_rows
from tests.support.judged_values import Row, from_arrow
from tests.support.paimon_tables import TARGET_SIZE, change_rows, inserts, store

VECTORS = "deletion-vectors.enabled"


@dataclass
class EvolvedTable(TrackedTable):
    """``marks_rows``: deletion vectors are switched on once Java has made the table."""

    marks_rows: bool = False
    statements: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.marks_rows:
            catalog = CatalogFactory.create({"warehouse": str(self.warehouse.path)})
            catalog.alter_table(str(NAME), [SchemaChange.set_option(VECTORS, "true")], False)

    def check(self) -> None:
        """Everybody has the rows and the ids that the model expects."""
        WatchedTable.check(self)
        found = {
            self.model.key_of(row): Identity(row["_ROW_ID"], row["_SEQUENCE_NUMBER"])
            for row in self._tracked()
        }
        assert len(found) == len(self.model.rows), self.text
        assert len({each.row_id for each in found.values()}) == len(found), (found, self.text)
        snapshot = self.snapshot
        for key, identity in found.items():
            old = self.ids.get(key)
            if old is None:
                assert identity.row_id in range(self.next_id, snapshot.next_row_id), self.text
            else:
                assert identity.row_id == old.row_id, (key, old, identity, self.text)
                assert old.snapshot <= identity.snapshot <= snapshot.id, (key, self.text)
            if old is None or key in self.changed:
                assert identity.snapshot == snapshot.id, (key, identity, self.text)
        self.ids, self.next_id, self.changed = found, snapshot.next_row_id or 0, set()

    def append(self, count: int) -> None:
        """A commit of Java, or of pypaimon where Java does not know the table."""
        if not self.marks_rows:
            super().append(count)
            return
        new = self.some_rows(count, new=True)
        arrays = {n: pa.array([row[n] for row in new], k) for n, k in self.columns.items()}
        self.warehouse.append(str(NAME), pa.table(arrays))
        for row in new:
            self.model.stored(row)
        self.note(f"pypaimon appends {new}")

    def merge(self) -> None:
        """A statement with two UPDATE clauses; it also inserts, and deletes if it may."""
        source = {self.model.key_of(row): row for row in self.some_rows(9)}
        names = [name for name in self.columns if name not in ("id", "part")]
        assigned = [self.rng.sample(names, self.rng.choice((1, 2, 2, 3))) for _ in range(2)]
        table = self.connector.metadata.load_table(NAME)
        old = {self.model.key_of(row): row for row in live_rows(self.connector, table)}
        changes: list[tuple[int, Row, int]] = []
        new: list[Row] = []
        for key, row in zip(source, self.typed(source.values()), strict=True):
            known, case = self.model.rows.get(key), self.rng.randrange(2)
            if known is None:
                new.append(row)
                self.model.stored(source[key])
            elif self.marks_rows and row["seq"] % 4 == 0:
                changes.append((rows.DELETE, old[key], 2))
                self.model.deleted(key)
                del self.ids[key]
            else:
                values = {name: row[name] for name in assigned[case]}
                changes.append((rows.UPDATE, {**old[key], **values}, case))
                own = {name: source[key][name] for name in assigned[case]}
                self.model.stored({**known, **own})
                self.changed.add(key)
        if changes or new:
            self._store_changes(table, changes, new, assigned)
            self.statements += 1
        self.note(f"merge sets {assigned}: {list(source.values())}")

    def write_columns_by_java(self) -> None:
        """Java writes new values of some columns of a whole range of an unpartitioned table."""
        table = self.connector.metadata.load_table(NAME)
        live = live_rows(self.connector, table)
        if not live:
            return
        ordinal = self.rng.choice(live)["file"]
        chosen = [row for row in live if row["file"] == ordinal]
        names = self.rng.sample(["a", "b", "c"], self.rng.choice((1, 2)))
        new = [self.new_row(number) for number in range(len(chosen))]
        values = [{name: row[name] for name in names} for row in self.typed(new)]
        first = table.native.files.unit_entries(ordinal)[0].file.first_row_id
        self.java.write_columns(first, values)
        for row, changed in zip(chosen, new, strict=True):
            key = self.model.key_of(row)
            self.model.stored({**self.model.rows[key], **{n: changed[n] for n in names}})
            self.changed.add(key)
        self.note(f"java writes {names} from {first}: {values}")

    def _store_changes(
        self,
        table: TableHandle,
        changes: Sequence[tuple[int, Row, int]],
        new: Sequence[Row],
        assigned: Sequence[Sequence[str]],
    ) -> None:
        connector = self.connector
        write = MergeWrite(
            Operation(f"statement-{uuid.uuid4().hex}", "digest", {}),
            connector.metadata.plan_files(table),
            (*map(tuple, assigned), (), ()),
            (),
            TARGET_SIZE,
        )
        handle = connector.writes.begin_merge(table, write)
        ordered = sorted(changes, key=lambda each: (each[1]["file"], each[1]["position"]))
        batches = [change_rows(table, kind, [row], case) for kind, row, case in ordered]
        if new:
            batches.append(inserts(table, list(new)))
        fragments = store(handle, *batches, task=uuid.uuid4().hex)
        connector.writes.finish_merge(table, handle, fragments, {})
        connector.writes.release_guard(table, write.operation.operation_id)

    def _read(self) -> list[Row]:
        if self.marks_rows:
            return self.warehouse.read_with_python(str(NAME))
        return super()._read()

    def _tracked(self) -> list[dict[str, Any]]:
        if not self.marks_rows:
            return read_with_java(self.warehouse.path, str(NAME), tracked=True)
        names = [*self.columns, "_ROW_ID", "_SEQUENCE_NUMBER"]
        builder = self.warehouse.table(str(NAME)).new_read_builder().with_projection(names)
        return from_arrow(builder.new_read().to_arrow(builder.new_scan().plan().splits()))
