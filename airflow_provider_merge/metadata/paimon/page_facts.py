"""What the pages about tables show of a Paimon table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from airflow_provider_merge.metadata.differing_files import DifferingFiles, RowColumn
from airflow_provider_merge.metadata.model import CompactionFacts
from airflow_provider_merge.metadata.page_facts import Expiry, FileChange, Hold, Ref, Totals
from airflow_provider_merge.metadata.paimon.row_files import differing_files
from airflow_provider_merge.metadata.paimon.snapshots import PaimonSnapshot, PaimonSnapshots
from airflow_provider_merge.metadata.paimon.table import PaimonTable
from airflow_provider_merge.storage.failures import unreadable
from airflow_provider_merge.storage.files import list_names, read_text
from airflow_provider_merge.storage.locations import child
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.durations import parse_option
from spark_jobs.contract.paimon_files import (
    entry_name,
    guarding_operation,
    ids_of,
    names_of,
    next_snapshot,
)
from spark_jobs.errors import NotSupportedError

_RETAIN_MAX: Final = "snapshot.num-retained.max"
_RETAIN_MIN: Final = "snapshot.num-retained.min"
_TIME_RETAINED: Final = "snapshot.time-retained"
_DEFAULT_MIN: Final = 10
_DEFAULT_TIME: Final = "1 h"
# Each is a file of its own.
_MOST_REFS: Final = 200
_READERS: Final = 8


@dataclass(frozen=True)
class PaimonPageFacts:
    """More of the metadata of ``table``."""

    table: PaimonTable

    def writer(self, snapshot: PaimonSnapshot) -> str:
        """The commit user."""
        return snapshot.commit_user

    def rows(self, snapshot: PaimonSnapshot) -> tuple[int, int] | None:
        """Its own count, which is one number for both."""
        count = 0 if snapshot.keeps_rows else snapshot.delta_record_count
        return None if count is None else (max(count, 0), max(-count, 0))

    def totals(self, snapshot: PaimonSnapshot) -> Totals | None:
        """Nothing: a snapshot of Paimon's does not count its files."""

    def change(self, snapshot: PaimonSnapshot) -> FileChange:
        """What the snapshot's own manifests add and remove."""
        files, size, rows = [0, 0], [0, 0], [0, 0]
        for is_added, file in self.table.manifests.delta_files(snapshot):
            place = 0 if is_added else 1
            files[place] += 1
            size[place] += file.size
            rows[place] += file.rows
        return FileChange(*files, *size, *rows)

    def refs(self) -> list[Ref]:
        """Branches, by the first snapshot that they still have, and tags."""
        branches, tags = self.table.branches()[-_MOST_REFS:], self.table.tags()[-_MOST_REFS:]
        with ThreadPoolExecutor(_READERS) as readers:
            begins = list(readers.map(self._branch_begin, branches))
            tagged = list(readers.map(self.table.tag, tags))
        refs = [Ref(n, "branch", each) for n, each in zip(branches, begins, strict=True) if each]
        return refs + [Ref(each.name, "tag", each.snapshot.snapshot_id) for each in tagged if each]

    def holds(self) -> list[Hold]:
        """Consumers, and the guards of operations."""
        folder, holds = f"{self.table.root}/consumer", []
        names = names_of("consumer", list_names(folder, self.table.storage_options))
        for name in names[:_MOST_REFS]:
            path = child(folder, entry_name("consumer", name))
            text = read_text(path, self.table.storage_options)
            if text is None:
                continue
            try:
                held = next_snapshot(json.loads(text))
            except (ValueError, KeyError, TypeError, RecursionError):
                raise unreadable(path, "is not a consumer") from None
            operation = guarding_operation(name)
            kind = Hold(name, "consumer", held)
            holds.append(kind if operation is None else Hold(operation, "operation", held))
        return holds

    def schema_ids(self) -> list[int]:
        """The ids of all schemas."""
        names = list_names(f"{self.table.root}/schema", self.table.storage_options)
        return ids_of("schema", names)

    def compaction(self, snapshot: PaimonSnapshot) -> list[CompactionFacts]:
        """What this project's compaction would find."""
        return self.table.compaction_facts(CompactSpec(), {}, snapshot)

    @property
    def compactor(self) -> str:
        """The operator."""
        return "CompactOperator"

    def differing_files(
        self, before: PaimonSnapshot, after: PaimonSnapshot
    ) -> list[DifferingFiles]:
        """Those of tables whose rows are each in one file."""
        return differing_files(self.table, before, after)

    def row_columns(self, snapshot: PaimonSnapshot) -> list[RowColumn]:
        """Those of its schema, which its files were written with."""
        columns = self.table.schema(snapshot.schema_id).columns
        return [RowColumn(each.name, each.type) for each in columns]

    def file_options(self, location: str) -> Mapping[str, Any]:
        """Those of the warehouse."""
        del location
        return self.table.storage_options

    def expiry(self, now_millis: int) -> Expiry:
        """By the options ``snapshot.num-retained.*`` and ``snapshot.time-retained``."""
        options = self.table.schema().options
        retain_min = _number(options.get(_RETAIN_MIN), _RETAIN_MIN, _DEFAULT_MIN)
        retain_max = _number(options.get(_RETAIN_MAX), _RETAIN_MAX, None)
        age = options.get(_TIME_RETAINED, _DEFAULT_TIME)
        try:
            limit = now_millis - int(parse_option(age).total_seconds() * 1000)
        except ValueError as error:
            raise _wrong(_TIME_RETAINED, str(error)) from None
        ids = self.table.snapshots.ids()
        holds = [each.snapshot_id for each in self.holds()]
        kept = self._first_retained(ids, retain_max, retain_min or _DEFAULT_MIN, limit, holds)
        limits = {
            _TIME_RETAINED: age,
            _RETAIN_MIN: str(retain_min),
            _RETAIN_MAX: "unlimited" if retain_max is None else str(retain_max),
        }
        return Expiry([each for each in ids if each < kept], kept, limits)

    def _branch_begin(self, name: str) -> int | None:
        root = child(f"{self.table.location.rstrip('/')}/branch", entry_name("branch", name))
        return next(iter(PaimonSnapshots(root, self.table.storage_options).ids()), None)

    def _first_retained(
        self,
        ids: Sequence[int],
        retain_max: int | None,
        retain_min: int,
        limit: int,
        holds: Sequence[int],
    ) -> int:
        """The oldest id that stays: as the connector's expiry decides, without reading them all.

        A snapshot stays if its successor is not older than ``limit``; times only grow.
        """
        if not ids:
            return 0
        latest = ids[-1]
        first = ids[0] if retain_max is None else max(latest - retain_max + 1, ids[0])
        end = min([latest - retain_min + 1, *holds])
        candidates = [each for each in ids if first <= each < end]
        low, high = 0, len(candidates)
        while low < high:
            middle = (low + high) // 2
            if self._succeeded_before(ids, candidates[middle], limit):
                low = middle + 1
            else:
                high = middle
        return candidates[low] if low < len(candidates) else max(end, ids[0])

    def _succeeded_before(self, ids: Sequence[int], snapshot_id: int, limit: int) -> bool:
        successor = self.table.snapshot(ids[ids.index(snapshot_id) + 1])
        return successor is None or successor.time_millis < limit


def _number(text: str | None, option: str, default: int | None) -> int | None:
    if text is None:
        return default
    if not text.strip().isdecimal() or not int(text):
        raise _wrong(option, f"{text[:100]!r} is not a positive number")
    return int(text)


def _wrong(option: str, problem: str) -> NotSupportedError:
    return NotSupportedError(f"Option {option}: {problem}.", "Correct the table's option.")
