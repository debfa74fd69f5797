"""Random histories of a table, remembered as the rows that each of its snapshots holds.

Everything follows from the seed: appends of pypaimon and of this connector, merges, overwrites,
deletion vectors, files of columns, tags, branches with commits of their own, consumers, a new
column.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypaimon.deletionvectors.deletion_vector import DeletionVector
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange
from pypaimon.table.source.deletion_file import DeletionFile

from spark_jobs.connectors.paimon.library import table_schema
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import CreateTagSpec
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.support.paimon_tables import (
    NAME,
    append_with_pypaimon,
    begin,
    change_rows,
    create,
    inserts,
    merge,
    store,
)

Row = dict[str, Any]
# A view of a table: "main" or a branch, with the id of a snapshot or the name of a tag.
View = tuple[str, int | str]


@dataclass
class History:
    """``rows`` of every snapshot and tag; ``consumers`` of main by name: where they go on."""

    warehouse: Path
    random: random.Random
    connector: Connector
    rows: dict[View, list[Row]] = field(default_factory=dict)
    branches: list[str] = field(default_factory=list)
    consumers: dict[str, int] = field(default_factory=dict)
    evolved: bool = False
    next_id: int = 0

    @property
    def table(self) -> Path:
        """The table's directory."""
        return self.warehouse / "shop.db/orders"

    @property
    def tags(self) -> list[str]:
        """The tags of main."""
        return [name for line, name in self.rows if line == "main" and isinstance(name, str)]

    def snapshots(self, line: str = "main") -> list[int]:
        """The ids of a line's snapshots that are remembered."""
        return sorted(each for of, each in self.rows if of == line and isinstance(each, int))

    def forget(self, *views: View) -> None:
        """The views are meant to be gone."""
        for view in views:
            del self.rows[view]

    def handle(self, line: str = "main") -> TableHandle:
        """A line's table, pinned now."""
        return self.connector.metadata.load_table(_name(line))

    def read(self, view: View) -> list[Row]:
        """The rows of a view, as pypaimon reads them."""
        line, at = view
        option = "scan.snapshot-id" if isinstance(at, int) else "scan.tag-name"
        table = self.handle(line).native.table.copy({option: str(at)})
        builder = table.new_read_builder()
        splits = builder.new_scan().plan().splits()
        found = builder.new_read().to_arrow(splits).to_pylist() if splits else []
        return sorted(found, key=repr)

    def remember(self, line: str) -> None:
        """Note the rows of a line's latest snapshot."""
        snapshot_id = self.handle(line).snapshot_id
        if snapshot_id is not None and (line, snapshot_id) not in self.rows:
            self.rows[line, snapshot_id] = self.read((line, snapshot_id))

    def step(self) -> None:
        """One thing happens."""
        line = self.random.choice(["main", "main", "main", *self.branches])
        changes = [self.append, self.merge, self.overwrite]
        if self._has_evolved(line):
            changes = [self.append]  # rows of older files cannot be changed here
        self.random.choice(changes)(line)
        for guard in self.table.rglob("consumer/consumer-merge-*"):
            guard.unlink()  # the operation has ended
        self.remember(line)
        if self.random.random() < 0.4:
            self.random.choice([self.tag, self.branch, self.consume, self.evolve])()

    def new_rows(self) -> list[Row]:
        """A few rows for one or two of three partitions."""
        made = []
        for _ in range(self.random.randint(1, 4)):
            self.next_id += 1
            made.append({"id": self.next_id, "v": "new", "p": self.random.choice([0, 1, 2])})
        return made

    def append(self, line: str) -> None:
        """By another engine, or by this one."""
        table = self.handle(line)
        if self._has_evolved(line) or self.random.random() < 0.5:
            append_with_pypaimon(table, self.new_rows())
        else:
            merge(self.connector, table, inserts(table, self.new_rows()), operation_id=self._id())

    def merge(self, line: str) -> None:
        """Some rows of a file are deleted or, in place, updated; new ones come."""
        table = self.handle(line)
        files = self.connector.metadata.plan_files(table)
        batches = []
        for file in self.random.sample(files, min(2, len(files))):
            if file.live_row_count:
                change = self._change(table, file.ordinal, self._live_position(table, file))
                batches.append(change)
        new = inserts(table, self.new_rows())
        assigned = (("v",), (), ())
        merge(self.connector, table, *batches, new, operation_id=self._id(), assigned=assigned)

    def overwrite(self, line: str) -> None:
        """Some files go as they are."""
        table = self.handle(line)
        files = self.connector.metadata.plan_files(table)
        handle = begin(self.connector, table, self._id())
        gone = [file for file in files if self.random.random() < 0.6]
        fragments = self.connector.writes.drop_files(table, handle, gone)
        fragments += store(handle, inserts(table, self.new_rows()))
        self.connector.writes.finish_merge(table, handle, fragments, {})

    def tag(self) -> None:
        """A name for any snapshot of main."""
        if ids := self.snapshots():
            self.next_id += 1
            name = f"t{self.next_id}"
            snapshot_id = self.random.choice(ids)
            spec = CreateTagSpec(name, snapshot_id, self.random.choice([None, "1 d"]))
            assert self.connector.maintenance is not None
            self.connector.maintenance.create_tag(NAME, spec)
            self.rows["main", name] = self.rows["main", snapshot_id]

    def branch(self) -> None:
        """A branch of a tag, with the tag's snapshot as its first."""
        self.tag()
        # pypaimon copies the file of the tag's snapshot, which may have expired.
        there = [t for t in self.tags if self._id_of(t) in self.snapshots()]
        if len(self.branches) < 2 and there:
            tag, name = self.random.choice(there), f"b{len(self.branches)}"
            self.handle().native.table.branch_manager().create_branch(name, tag)
            self.branches.append(name)
            self.remember(name)
            self.rows[name, tag] = self.read((name, tag))

    def consume(self) -> None:
        """A reader of main notes where it goes on."""
        if ids := self.snapshots():
            name = self.random.choice(["c", "d"])
            self.consumers[name] = self.random.choice([*ids, ids[-1] + 1])
            path = self.table / f"consumer/consumer-{name}"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps({"nextSnapshot": self.consumers[name]}))

    def evolve(self) -> None:
        """A new column of main, once, and late."""
        if not self.evolved and len(self.rows) > 5:
            catalog = self.handle().native.table.catalog_environment.catalog_loader.load()
            catalog.alter_table(str(NAME), [SchemaChange.add_column("n", AtomicType("INT"))])
            self.evolved = True
            self.rows = {view: self.read(view) for view in self.rows}

    def _change(self, table: TableHandle, ordinal: int, position: int) -> Any:
        at = {"file": ordinal, "position": position}
        if self._deletes(table.native):
            return change_rows(table, rows.DELETE, [at], case=1)
        return change_rows(table, rows.UPDATE, [{**at, "v": f"changed {self.next_id}"}])

    def _deletes(self, native: Any) -> bool:
        """Only files of columns update rows under data evolution, and only vectors delete them."""
        if native.evolves_columns:
            return native.marks_rows and self.random.random() < 0.5
        return native.marks_rows or self.random.random() < 0.5

    def _live_position(self, table: TableHandle, file: Any) -> int:
        """A row of a file that is not marked as deleted."""
        if not file.deleted_row_count:
            return self.random.randrange(file.row_count)
        vector = table.native.files.vectors[Path(file.path).name]
        location = DeletionFile(vector.path, vector.offset, vector.length, vector.cardinality)
        marks = DeletionVector.read(table.native.table.file_io, location)
        return next(i for i in range(file.row_count) if not marks.is_deleted(i))

    def _has_evolved(self, line: str) -> bool:
        """Main, or a branch that was made of it since."""
        return table_schema.schema_id(self.handle(line).native.table) > 0

    def _id_of(self, tag: str) -> int:
        return int(json.loads((self.table / f"tag/tag-{tag}").read_text())["id"])

    def _id(self) -> str:
        self.next_id += 1
        return f"op-{self.next_id}"


def _name(line: str) -> TableName:
    return NAME if line == "main" else TableName("shop", f"orders$branch_{line}")


def new_history(warehouse: Path, seed: int, commits: int | None = None) -> History:
    """A history of some commits."""
    chosen = random.Random(seed)
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    options = {"manifest.merge-min-count": chosen.choice(["2", "4", "30"])}
    if chosen.random() < 0.5:
        options["deletion-vectors.enabled"] = "true"
    options["snapshot.expire.limit"] = random.Random(f"batch {seed}").choice(["1", "3", "50"])
    if random.Random(f"columns {seed}").random() < 0.3:
        options |= {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    partitions = chosen.choice([["p"], []])
    create(connector, {"id": "int", "v": "string", "p": "int"}, partitions, options)
    history = History(warehouse, chosen, connector)
    for _ in range(commits or chosen.randint(3, 12)):
        history.step()
    return history
