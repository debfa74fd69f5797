"""Metadata of a Paimon table in a folder, written without pypaimon: for tests in the Airflow
environment and for benchmarks of triggers. tests/connectors compares the readers with pypaimon.
"""

from __future__ import annotations

import io
import json
import struct
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Self

import fastavro

_STATS = {
    "type": "record",
    "name": "stats",
    "fields": [{"name": "_MIN_VALUES", "type": "bytes"}, {"name": "_MAX_VALUES", "type": "bytes"}],
}
_LIST = {
    "type": "record",
    "name": "manifest",
    "fields": [
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_PARTITION_STATS", "type": _STATS},
    ],
}
_FILE = {
    "type": "record",
    "name": "file",
    "fields": [
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_ROW_COUNT", "type": "long"},
        {"name": "_MIN_SEQUENCE_NUMBER", "type": "long"},
        {"name": "_MAX_SEQUENCE_NUMBER", "type": "long"},
        {"name": "_LEVEL", "type": "int"},
        {"name": "_CREATION_TIME", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "_DELETE_ROW_COUNT", "type": ["null", "long"]},
        {"name": "_SCHEMA_ID", "type": "long"},
    ],
}
_ENTRY = {
    "type": "record",
    "name": "entry",
    "fields": [
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_FILE", "type": _FILE},
    ],
}


@dataclass
class TableFiles:
    """The table ``<warehouse>/shop.db/<name>``, partitioned by the column ``day``.

    Data can only be added to a table that is partitioned so, or not at all. ``day_type`` is DATE,
    STRING or INT.
    """

    warehouse: Path
    name: str = "orders"
    latest: int = 0
    partition_keys: Sequence[str] = ("day",)
    day_type: str = "DATE"
    more_columns: Mapping[str, Any] = field(default_factory=dict)
    _base: list[dict[str, Any]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.warehouse / "shop.db" / self.name

    def create(self, **options: str) -> Self:
        columns = [
            {"id": 0, "name": "id", "type": "BIGINT"},
            {"id": 1, "name": "day", "type": self.day_type},
        ]
        keys = list(self.partition_keys)
        columns += [{"id": 2, "name": each, "type": "INT"} for each in keys[1:]]
        columns += [
            {"id": number, "name": name, "type": type_}
            for number, (name, type_) in enumerate(self.more_columns.items(), len(columns))
        ]
        schema = {
            "version": 3,
            "id": 0,
            "fields": columns,
            "highestFieldId": len(columns) - 1,
            "partitionKeys": keys,
            "primaryKeys": [],
            "options": options,
            "timeMillis": 0,
        }
        self._write("schema/schema-0", json.dumps(schema))
        return self

    def add(
        self,
        rows: Mapping[str | None, int] | None = None,
        *,
        kind: str = "APPEND",
        time_millis: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> int:
        """Commit files with so many rows by day; the id of the snapshot."""
        counts = (rows or {"2026-01-31": 1}).items()
        entries = [_entry(self._partition(day), count) for day, count in counts]
        return self.commit(entries, kind=kind, time_millis=time_millis, properties=properties)

    def commit(
        self,
        entries: Sequence[dict[str, Any]],
        *,
        kind: str = "APPEND",
        time_millis: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> int:
        """Commit entries of a manifest; the id of the snapshot."""
        base = self._list(self._base)
        manifest = {
            "_FILE_NAME": self._avro("manifest", _ENTRY, entries),
            "_PARTITION_STATS": _stats(entries),
        }
        self._base.append(manifest)
        self.latest += 1
        document = {
            "version": 3,
            "id": self.latest,
            "schemaId": 0,
            "baseManifestList": base,
            "deltaManifestList": self._list([manifest]),
            "commitUser": "user",
            "commitIdentifier": self.latest,
            "commitKind": kind,
            "timeMillis": int(time.time() * 1000) if time_millis is None else time_millis,
            "totalRecordCount": sum(entry["_FILE"]["_ROW_COUNT"] for entry in entries),
            "properties": dict(properties or {}),
        }
        self._write(f"snapshot/snapshot-{self.latest}", json.dumps(document))
        self._write("snapshot/LATEST", str(self.latest))
        return self.latest

    def tag(self, name: str, snapshot_id: int) -> None:
        self._write(
            f"tag/tag-{name}", (self.folder / f"snapshot/snapshot-{snapshot_id}").read_text()
        )

    def expire(self, snapshot_id: int) -> None:
        (self.folder / f"snapshot/snapshot-{snapshot_id}").unlink()

    def roll_back(self, snapshot_id: int) -> None:
        """Remove the snapshots after this one."""
        self._write("snapshot/LATEST", str(snapshot_id))
        for each in range(snapshot_id + 1, self.latest + 1):
            self.expire(each)
        del self._base[snapshot_id:]
        self.latest = snapshot_id

    def _partition(self, day: str | None) -> bytes:
        if not self.partition_keys:
            return _row(0)
        binary = {"STRING": _text, "INT": _number, "DATE": _date}[self.day_type]
        return _row(1, binary(day))

    def _list(self, manifests: list[dict[str, Any]]) -> str:
        return self._avro("manifest-list", _LIST, manifests)

    def _avro(self, prefix: str, schema: dict[str, Any], records: Sequence[dict[str, Any]]) -> str:
        content = io.BytesIO()
        fastavro.writer(content, schema, records, codec="zstandard")
        name = f"{prefix}-{uuid.uuid4()}"
        self._write(f"manifest/{name}", content.getvalue())
        return name

    def _write(self, name: str, content: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        part.replace(path)


def _entry(partition: bytes, rows: int) -> dict[str, Any]:
    file = {
        "_FILE_NAME": f"data-{uuid.uuid4()}.parquet",
        "_FILE_SIZE": 100,
        "_ROW_COUNT": rows,
        "_MIN_SEQUENCE_NUMBER": 0,
        "_MAX_SEQUENCE_NUMBER": 0,
        "_LEVEL": 0,
        "_CREATION_TIME": 0,
        "_DELETE_ROW_COUNT": 0,
        "_SCHEMA_ID": 0,
    }
    return {"_KIND": 0, "_PARTITION": partition, "_BUCKET": 0, "_FILE": file}


def _row(arity: int, value: bytes | None = b"") -> bytes:
    """Paimon's binary row of at most one value; None: NULL."""
    nulls = bytes([0, value is None, *bytes(6)])
    return struct.pack(">i", arity) + nulls + (bytes(8) if value is None else value)


def _date(day: str | None) -> bytes | None:
    if day is None:
        return None
    return struct.pack("<q", (date.fromisoformat(day) - date(1970, 1, 1)).days)


def _number(text: str | None) -> bytes | None:
    return None if text is None else struct.pack("<q", int(text))


def _text(text: str | None) -> bytes | None:
    """Up to seven bytes, then their number."""
    if text is None:
        return None
    return text.encode().ljust(7, b"\0") + bytes([0x80 | len(text.encode())])


def _stats(entries: Sequence[dict[str, Any]]) -> dict[str, bytes]:
    rows = [entry["_PARTITION"] for entry in entries]
    ordered = sorted(rows, key=lambda row: struct.unpack("<q", row[-8:]))
    return {"_MIN_VALUES": ordered[0], "_MAX_VALUES": ordered[-1]}
