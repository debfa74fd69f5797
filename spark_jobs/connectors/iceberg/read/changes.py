"""The files in which snapshots of a table differ. Driver only.

Follows the Iceberg specification: a snapshot of the operation ``replace`` has the rows of the one
before. Of any other, files that it added and removed, and files whose deletes differ, tell what
changed. Rows are compared, so that rows that a copy-on-write carried are no change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from spark_jobs.connectors.iceberg.format.row_lineage import ROW_ID_FIELD
from spark_jobs.connectors.iceberg.read.arrow_scan import ScannedFile
from spark_jobs.connectors.iceberg.read.scan import arrow_scan
from spark_jobs.connectors.iceberg.read.scanned_files import scanned
from spark_jobs.connectors.iceberg.table.commits import commit_of, summary_of
from spark_jobs.connectors.iceberg.table.live_files import LiveFile
from spark_jobs.connectors.iceberg.table.manifests import ManifestEntry
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors, pinned_table
from spark_jobs.connectors.shared.read.scans import ChangedPart, ChangedScan, arrow_rows
from spark_jobs.connectors.shared.table.former_states import no_history
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.changes import CAME, GONE, ChangedFile, ConnectorChanges, TableChanges
from spark_jobs.spi.tables import PlannedFile, TableHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.contract.request import TableName

# A snapshot, and the one after it.
_Step = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a file: the live ones, or those that its deletes mark, but not those of ``but``."""

    file: LiveFile
    but: LiveFile | None = None

    def __str__(self) -> str:
        deletes = [_deletes(each) for each in (self.file, self.but) if each is not None]
        return f"{self.file.path} {deletes}"


class IcebergChanges(ConnectorChanges):
    """Implements ``ConnectorChanges``."""

    def changes(self, table: TableHandle, since: int, *, net: bool) -> TableChanges:
        """The changed files; updates are pairs with identifier fields, or in version 3."""
        pinned = pinned_table(table)
        with reading_metadata(pinned.place):
            steps = _steps(table.name, pinned, since)
            found = list(_Differences(pinned).of(steps, net=net))
        names = {each.name for each in pinned.columns}
        key = tuple(each for each in pinned.identifiers if each in names)
        return TableChanges(table, tuple(found), "rows", key, pinned.has_lineage and not key)

    def changed_rows(
        self, spark: SparkSession, changes: TableChanges, files: Sequence[ChangedFile]
    ) -> ArrowRows:
        """The rows of ``files`` by pyarrow."""
        table, pinned = changes.table, pinned_table(changes.table)
        parts = {n: _part(pinned, table.name, n, each.native) for n, each in enumerate(files)}
        planned = [_planned(number, each) for number, each in enumerate(files)]
        more = (ROW_ID_FIELD,) if changes.has_row_ids else ()
        reader = ChangedScan(arrow_scan(pinned, table.column_names, {}, *more))
        return arrow_rows(spark, planned, reader, parts)


def _steps(name: TableName, table: PinnedTable, since: int) -> list[_Step]:
    """The steps from ``since`` to the pinned snapshot, oldest first.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND.
    """
    history: list[Any] = []
    for snapshot in ancestors(table):
        history.append(snapshot)
        if snapshot.snapshot_id == since:
            history.reverse()
            return list(pairwise(history))
    raise no_history(name, since, table.branch)


@dataclass(frozen=True, slots=True)
class _Differences:
    """Which rows differ between snapshots of a table; those that were read last are kept."""

    table: PinnedTable
    _files: dict[int, Mapping[str, LiveFile]] = field(default_factory=dict)

    def of(self, steps: Sequence[_Step], *, net: bool) -> Iterator[ChangedFile]:
        """The changed files of ``steps``, oldest first."""
        if net and len(steps) > 1 and not any(_keeps_rows(after) for _, after in steps):
            yield from self._differing(steps[0][0], steps[-1][1])
            return
        for before, after in steps:
            if _keeps_rows(after):
                continue
            if summary_of(after).get("operation") == "append":
                yield from self._appended(after)
            else:
                yield from self._differing(before, after)

    def _appended(self, after: Any) -> Iterator[ChangedFile]:
        """The files of a snapshot that only adds files, to which no deletes apply yet."""
        commit = commit_of(self.table, after)
        if commit.removed or commit.delete_files:
            raise ValueError(f"snapshot {after.snapshot_id} says append, and removes rows")
        for entry in commit.added:
            file = LiveFile(entry, self.table.storage.path(entry.path))
            yield _changed(after, CAME, _Rows(file))

    def _differing(self, before: Any, after: Any) -> Iterator[ChangedFile]:
        old, new = self._files_of(before), self._files_of(after)
        for path in sorted(old.keys() | new.keys()):
            was, now = old.get(path), new.get(path)
            if was is None and now is not None:
                yield _changed(after, CAME, _Rows(now))
            elif was is not None and now is None:
                yield _changed(after, GONE, _Rows(was))
            elif was is not None and now is not None and _deletes(was) != _deletes(now):
                yield _changed(after, GONE, _Rows(now, was))
                if not set(_deletes(was)) <= set(_deletes(now)):
                    # Deletes were replaced: a row may be back.
                    yield _changed(after, CAME, _Rows(was, now))

    def _files_of(self, snapshot: Any) -> Mapping[str, LiveFile]:
        files = self._files.get(snapshot.snapshot_id)
        if files is None:
            then = replace(self.table, snapshot=snapshot)
            files = {each.path: each for each in then.lean_files}
            for other in list(self._files)[:-1]:
                del self._files[other]
            self._files[snapshot.snapshot_id] = files
        return files


def _keeps_rows(snapshot: Any) -> bool:
    return summary_of(snapshot).get("operation") == "replace"


def _changed(snapshot: Any, sign: int, rows: _Rows) -> ChangedFile:
    file = rows.file
    return ChangedFile(int(snapshot.snapshot_id), sign, file.path, str(rows), file.entry.size, rows)


def _deletes(file: LiveFile) -> list[str]:
    return sorted(map(_delete, file.all_deletes))


def _delete(entry: ManifestEntry) -> str:
    return repr(entry.key)


def _part(
    table: PinnedTable, name: TableName, number: int, rows: _Rows
) -> ChangedPart[ScannedFile]:
    file = scanned(table, name, number, rows.file)
    if rows.but is None:
        return ChangedPart(file)
    return ChangedPart(file, scanned(table, name, number, rows.but))


def _planned(number: int, file: ChangedFile) -> PlannedFile:
    """A file for the packing of tasks."""
    rows: _Rows = file.native
    return PlannedFile(number, rows.file.path, {}, rows.file.entry.row_count, file.size, {})
