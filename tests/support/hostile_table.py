"""Tables whose every name and value is hostile to whoever shows it."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_jobs.contract import properties
from tests.support.hostile_texts import hostile_names, hostile_texts
from tests.support.paimon_metadata import _ENTRY, TableFiles, _entry, _row
from tests.support.paimon_rows import TableRows

_SHORT = 7


@dataclass
class HostileTable(TableFiles):
    """A table ``shop.hostile``: partitions, columns, commit users, DAGs and tags are hostile."""

    name: str = "hostile"
    day_type: str = "STRING"
    partition_values: list[str] = field(default_factory=lambda: hostile_texts(100))
    columns: list[str] = field(default_factory=lambda: hostile_texts(100))
    writers: list[str] = field(default_factory=lambda: hostile_texts(100))
    tags: list[str] = field(default_factory=lambda: hostile_names(100))

    def fill(self) -> HostileTable:
        """Make the table."""
        self.more_columns = dict(zip(self.columns, self.columns, strict=True))
        self.create()
        entries = [_entry(_partition(value), 1) for value in self.partition_values]
        manifest = {
            "_FILE_NAME": self._avro("manifest", _ENTRY, entries),
            "_PARTITION_STATS": {"_MIN_VALUES": _row(1, None), "_MAX_VALUES": _row(1, None)},
        }
        empty, first = self._list([]), self._list([manifest])
        for number, writer in enumerate(self.writers, 1):
            lists = (empty, first) if number == 1 else (first, empty)
            self._write(f"snapshot/snapshot-{number}", json.dumps(_snapshot(number, writer, lists)))
        self._write("snapshot/LATEST", str(len(self.writers)))
        for number, tag in enumerate(self.tags, 1):
            self.tag(tag, number)
        return self


def hostile_tables(warehouse: Path) -> list[str]:
    """Make empty tables with hostile names in the database ``odd``; their names."""
    names = hostile_names(100)
    for name in names:
        made = TableFiles(warehouse, name).create()
        place = warehouse / "odd.db" / name
        place.parent.mkdir(exist_ok=True)
        made.folder.rename(place)
    return names


@dataclass
class HostileRows(TableRows):
    """A table ``shop.hostile_rows`` of two snapshots, whose columns and values are hostile."""

    name: str = "hostile_rows"
    columns: list[str] = field(default_factory=lambda: hostile_texts(28))
    values: list[str] = field(default_factory=lambda: hostile_texts(28 * 20))

    def fill(self) -> HostileRows:
        """Make the table; the second snapshot adds the values, 20 in each column."""
        self.more_columns = dict.fromkeys(self.columns, "STRING")
        self.create()
        self.commit([self.file("2026-01-30", {"id": [0]})])
        parts = {name: self.values[n * 20 :][:20] for n, name in enumerate(self.columns)}
        self.commit([self.file("2026-01-31", {"id": range(20), **parts})])
        return self


def hostile_result(texts: Sequence[str]) -> dict[str, Any]:
    """What a dry run returns, with all these texts in it."""
    target, *names = texts
    parts = {name: names[n::3] for n, name in enumerate(("partitions", "schema_changes", "files"))}
    partitions = parts.pop("partitions")
    return {
        "status": "dry_run",
        "target": f"shop.{target}",
        "metrics": {"clauses": [], "plan": target},
        "partitions": partitions,
        "partition_metrics": [{"name": name, "inserted": 1} for name in partitions],
        **parts,
    }


def hostile_plan(texts: Sequence[str]) -> dict[str, Any]:
    """What table care for many tables returns, with all these texts in it."""
    names = ("catalog", "table", "reason")
    steps = [
        dict(zip(names, texts[start : start + 3], strict=False))
        for start in range(0, len(texts), 3)
    ]
    known = {"action": "compact", "status": "failed", "read": 2048, "at_least": True, "free": 5}
    return {"status": "dry_run", "counts": {"failed": len(steps)}, "read": 2048, "tables": [
        {**dict.fromkeys(names, ""), **known, **each} for each in steps
    ]}  # fmt: skip


def _snapshot(number: int, writer: str, lists: tuple[str, str]) -> dict[str, Any]:
    made = {properties.DAG_ID: writer, properties.RUN_ID: writer, properties.TASK_ID: writer}
    return {
        "version": 3,
        "id": number,
        "schemaId": 0,
        "baseManifestList": lists[0],
        "deltaManifestList": lists[1],
        "commitUser": writer,
        "commitIdentifier": number,
        "commitKind": writer,
        "timeMillis": 1_700_000_000_000 + number * 60_000,
        "totalRecordCount": 1,
        "properties": made if number % 2 else {},
    }


def _partition(text: str) -> bytes:
    """A binary row of one text: a longer one is behind the row, which has its place and length."""
    content = text.encode()
    if len(content) <= _SHORT:
        return _row(1, content.ljust(_SHORT, b"\0") + bytes([0x80 | len(content)]))
    return _row(1, struct.pack("<q", (16 << 32) | len(content))) + content
