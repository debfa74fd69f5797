"""The executor half of the folder connector: rewrites whole files, simply."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.spi import rows
from spark_jobs.spi.writes import Fragment


@dataclass
class FolderSink:
    """Collects a task's rows and rewrites each file once, when it finishes."""

    folder: str
    files: dict[int, str]
    schema: pa.Schema
    assigned_columns: tuple[tuple[str, ...], ...]
    row_group_size: int
    changes: list[dict] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)

    def store_merged_rows(self, batch):
        self.changes += batch.to_pylist()

    def finish(self):
        changed: dict[int, list[dict]] = {}
        new = []
        for change in self.changes:
            if change[rows.OPERATION] == rows.INSERT:
                new.append({name: change.get(name) for name in self.schema.names})
            else:
                changed.setdefault(change[rows.ROW_ID]["file"], []).append(change)
        fragments = [self._rewritten(ordinal, of_file) for ordinal, of_file in changed.items()]
        if new:
            path = self._write(new)
            fragments.append(
                Fragment({"added": [path.name], "removed": []}, 1, 0, 0, path.stat().st_size)
            )
        return fragments

    def abort(self):
        for path in self.written:
            path.unlink()

    def read_row(self, row_id, columns):
        path = Path(self.folder, self.files[row_id["file"]])
        row = pq.read_table(path, schema=self.schema).slice(row_id["position"], 1).to_pylist()[0]
        return {name: row[name] for name in columns}

    def _rewritten(self, ordinal, changes):
        name = self.files[ordinal]
        table = pq.ParquetFile(Path(self.folder, name)).read().to_pylist()
        deleted = set()
        for change in changes:
            position = change[rows.ROW_ID]["position"]
            if change[rows.OPERATION] == rows.DELETE:
                deleted.add(position)
            for column in self.assigned_columns[change[rows.CASE_NUMBER]]:
                table[position][column] = change[column]
        kept = [row for position, row in enumerate(table) if position not in deleted]
        added = [self._write(kept).name] if kept else []
        return Fragment(
            {"added": added, "removed": [name]},
            files_added=len(added),
            files_removed=1,
            files_rewritten=1,
            rows_carried=len(table) - len(changes),
        )

    def _write(self, table):
        path = Path(self.folder, f"{uuid.uuid4().hex}.parquet")
        self.written.append(path)
        pq.write_table(
            pa.Table.from_pylist(table, schema=self.schema),
            path,
            row_group_size=self.row_group_size,
        )
        return path


@dataclass(frozen=True)
class FolderSinks:
    """Makes the sinks of one write."""

    folder: str
    files: dict[int, str]
    schema: pa.Schema
    assigned_columns: tuple[tuple[str, ...], ...]
    row_group_size: int

    def open(self, task_key):
        return FolderSink(
            self.folder, self.files, self.schema, self.assigned_columns, self.row_group_size
        )
