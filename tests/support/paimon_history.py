"""A long history of a Paimon table, as this project's jobs and another engine would leave it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from spark_jobs.contract import properties
from tests.support.paimon_metadata import _ENTRY, TableFiles, _entry, _stats

_MERGED_EVERY = 100


@dataclass
class LongHistory(TableFiles):
    """Adds many snapshots quickly: older manifests are merged into one now and then."""

    dag_id: str = "nightly_orders"
    began_millis: int = 1_767_225_600_000
    every_millis: int = 3_600_000
    first_day: date = date(2026, 1, 1)
    days: int = 400
    _live: list[dict[str, Any]] = field(default_factory=list)
    _rows: int = 0

    def grow(self, snapshots: int, files: int = 2) -> None:
        """Add so many snapshots with so many files each."""
        for number, days in enumerate(self._days(snapshots, files), self.latest + 1):
            entries = [_entry(self._partition(day), rows) for day, rows in days]
            for entry in entries:
                entry["_FILE"]["_FILE_SIZE"] = self._size_of(number)
                entry["_FILE"]["_CREATION_TIME"] = self.time_of(number)
            base = self._list(self._base)
            manifest = {
                "_FILE_NAME": self._avro("manifest", _ENTRY, entries),
                "_PARTITION_STATS": _stats(entries),
            }
            self._live += entries
            self._base.append(manifest)
            if number % _MERGED_EVERY == 0:
                self._merge_manifests()
            self._rows += sum(rows for _, rows in days)
            self._snapshot(number, base, manifest, sum(rows for _, rows in days))
        self._write("snapshot/LATEST", str(self.latest))

    def time_of(self, number: int) -> int:
        """When a snapshot was made."""
        return self.began_millis + number * self.every_millis

    @staticmethod
    def _size_of(number: int) -> int:
        return 1_000_000 + 7919 * number % 90_000_000

    def _days(self, snapshots: int, files: int) -> Iterator[list[tuple[str, int]]]:
        for number in range(self.latest, self.latest + snapshots):
            places = [(number * 7 + each * 31) % self.days for each in range(files)]
            yield [
                (str(self.first_day + timedelta(days=place)), _rows_of(number)) for place in places
            ]

    def _merge_manifests(self) -> None:
        name = self._avro("manifest", _ENTRY, self._live)
        self._base = [{"_FILE_NAME": name, "_PARTITION_STATS": _stats(self._live)}]

    def _snapshot(self, number: int, base: str, manifest: dict[str, Any], rows: int) -> None:
        document = {
            "version": 3,
            "id": number,
            "schemaId": 0,
            "baseManifestList": base,
            "deltaManifestList": self._list([manifest]),
            "commitUser": "flink-ingest",
            "commitIdentifier": number,
            "commitKind": "APPEND",
            "timeMillis": self.time_of(number),
            "totalRecordCount": self._rows,
            "deltaRecordCount": rows,
            "properties": {} if number % 5 == 0 else self._made(number, rows),
        }
        self._write(f"snapshot/snapshot-{number}", json.dumps(document))
        self.latest = number

    def _made(self, number: int, rows: int) -> dict[str, str]:
        metrics = {
            "source_rows": rows,
            "inserted": rows * 2 // 3,
            "updated": rows // 3,
            "deleted": number * 3 % 60,
            "partitions_changed": 2,
            "files_added": 2,
            "bytes_added": 2 * self._size_of(number),
            "seconds": {"read": 1.5, "join": 4.25, "write": 2.5, "publish": 0.2},
        }
        return {
            properties.OPERATION_ID: f"{number:016x}",
            properties.STATEMENT: "merge",
            properties.BASE_SNAPSHOT_ID: str(number - 1),
            properties.DAG_ID: self.dag_id,
            properties.RUN_ID: f"scheduled__{number}",
            properties.TASK_ID: "merge_orders",
            properties.MAP_INDEX: "-1",
            properties.TRY_NUMBER: str(1 + number % 2),
            properties.RETRIES: "2",
            properties.METRICS: json.dumps(metrics),
        }


def _rows_of(number: int) -> int:
    """More by day than by night, and never quite the same."""
    return int(500 + 380 * math.sin(number / 24 * 2 * math.pi) + number * 7919 % 113)
