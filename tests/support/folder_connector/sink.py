"""The executor half of the folder connector: rewrites whole files, simply."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.datafiles.values import encode_value
from spark_jobs.spi import rows
from spark_jobs.spi.writes import Fragment

Row = dict[str, Any]


@dataclass(frozen=True)
class FolderSinks:
    """Makes the sinks of one write."""

    folder: str
    write_id: str
    files: Mapping[int, str]
    schema: pa.Schema
    partition_keys: tuple[str, ...]
    assigned_columns: tuple[tuple[str, ...], ...]
    row_group_size: int
    dry_run: bool = False

    def open(self, task_key: str) -> FolderSink:
        return FolderSink(self, f"{self.write_id}-{task_key}")


@dataclass
class FolderSink:
    """Collects a task's rows and rewrites each file once, when it finishes."""

    write: FolderSinks
    prefix: str
    changes: list[Row] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        self.changes += batch.to_pylist()

    def finish(self) -> list[Fragment]:
        inserts = [each for each in self.changes if each[rows.OPERATION] == rows.INSERT]
        others = [each for each in self.changes if each[rows.OPERATION] != rows.INSERT]
        fragments = [
            self._rewritten(ordinal, list(changes))
            for ordinal, changes in itertools.groupby(others, lambda row: row[rows.ROW_ID]["file"])
        ]
        keys = self.write.partition_keys
        for place, new in itertools.groupby(inserts, lambda row: [row[key] for key in keys]):
            name, size = self._write(new)
            partition = [encode_value(value) for value in place]
            document = {"added": [name], "removed": [], "partition": partition}
            fragments.append(Fragment(document, files_added=1, bytes_added=size))
        return fragments

    def abort(self) -> None:
        for path in self.written:
            path.unlink(missing_ok=True)

    def read_row(self, row_id: Mapping[str, Any], columns: Iterable[str]) -> Row:
        row = self._read(row_id["file"])[row_id["position"]]
        return {name: row[name] for name in columns}

    def _rewritten(self, ordinal: int, changes: list[Row]) -> Fragment:
        old = self._read(ordinal)
        deleted = set()
        for change in changes:
            position = change[rows.ROW_ID]["position"]
            if change[rows.OPERATION] == rows.DELETE:
                deleted.add(position)
            for column in self.write.assigned_columns[change[rows.CASE_NUMBER]]:
                old[position][column] = change[column]
        kept = [row for position, row in enumerate(old) if position not in deleted]
        added = [self._write(kept)] if kept else []
        name = self.write.files[ordinal]
        return Fragment(
            {"added": [new for new, _ in added], "removed": [name]},
            files_added=len(added),
            files_removed=1,
            files_rewritten=len(added),
            bytes_added=sum(size for _, size in added),
            bytes_removed=Path(self.write.folder, name).stat().st_size,
            rows_carried=len(old) - len(changes),
        )

    def _read(self, ordinal: int) -> list[Row]:
        path = Path(self.write.folder, self.write.files[ordinal])
        read: list[Row] = pq.ParquetFile(path).read().to_pylist()
        return read

    def _write(self, content: Iterable[Row]) -> tuple[str, int]:
        path = Path(self.write.folder, f"{self.prefix}-{len(self.written)}.parquet")
        table = pa.Table.from_pylist(list(content), schema=self.write.schema)
        stored = pa.BufferOutputStream()
        pq.write_table(table, stored, row_group_size=self.write.row_group_size)
        if not self.write.dry_run:
            path.write_bytes(stored.getvalue())
        self.written.append(path)
        return path.name, stored.getvalue().size
