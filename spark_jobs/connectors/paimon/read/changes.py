"""The files in which snapshots of a table differ. Driver only.

Of an append table these are the files of its delta manifests, and files whose deletion vectors
differ; compactions keep the rows. A table with a primary key tells its changes in changelog files,
if it has a producer of them: without, an added record says nothing about the row before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, get_args

import pyarrow as pa

from spark_jobs.arrow_types import arrow_type
from spark_jobs.connectors.paimon.format.manifest_entries import ADD, POSTPONED
from spark_jobs.connectors.paimon.format.row_tracking import COLUMNS, RowIdentity
from spark_jobs.connectors.paimon.format.vectors import VectorLocation
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader
from spark_jobs.connectors.paimon.library import manifest_files, stored_snapshots
from spark_jobs.connectors.paimon.read.arrow_scan import ArrowScan, ScannedFile
from spark_jobs.connectors.paimon.read.keyed_scan import ChangelogFile, ChangelogScan
from spark_jobs.connectors.paimon.read.planning import keyed_schema
from spark_jobs.connectors.paimon.read.scan import (
    refuse_nanoseconds,
    require_avro_reader,
    spark_types,
)
from spark_jobs.connectors.paimon.table.file_refusals import (
    refuse_file,
    refuse_indexes,
    refuse_start,
    refuse_untold,
    untold_snapshot,
)
from spark_jobs.connectors.paimon.table.stored_files import StoredFiles
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.read.scans import ChangedPart, ChangedScan, arrow_rows
from spark_jobs.connectors.shared.table.former_states import no_history
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.properties import STATEMENT
from spark_jobs.contract.statements import RowStatement
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_formats import is_avro
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.changes import CAME, GONE, ChangedFile, ConnectorChanges, TableChanges
from spark_jobs.spi.tables import PlannedFile, TableHandle

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import SparkSession


# This project's statements that tell what they change; there may be nothing to tell.
_TELLING: Final = frozenset(each.kind for each in (*get_args(RowStatement), InsertIntoSpec))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a file: live ones, or (``marks``) those that ``vector`` marks, and ``but`` not."""

    path: str
    entry: Any
    vector: VectorLocation | None = None
    marks: bool = False
    but: VectorLocation | None = None

    def __str__(self) -> str:
        return f"{self.path} {self.vector} {self.marks} {self.but}"


@dataclass(frozen=True, slots=True)
class _State:
    """A snapshot and the deletion vectors that it has; None: before the first one."""

    snapshot: Any | None
    vectors: Mapping[str, VectorLocation]


@dataclass(frozen=True, slots=True)
class _Step:
    """What one or several snapshots did: entries of files, oldest first."""

    before: _State
    after: _State
    entries: Sequence[Any]

    @property
    def keeps_rows(self) -> bool:
        """Whether it is a compaction; older versions of Paimon also call deletes so."""
        removed = {each.file.file_name for each in self.entries if each.kind != ADD}
        is_compaction = self.after.snapshot.commit_kind == "COMPACT"  # type: ignore[union-attr]
        return is_compaction and self.marked <= removed

    @property
    def unmarks_rows(self) -> bool:
        """Whether a vector of a file marks fewer rows than before: an undo brought some back."""
        removed = {each.file.file_name for each in self.entries if each.kind != ADD}
        old, new = self.before.vectors, self.after.vectors
        return any(
            name not in removed and (name not in new or new[name].cardinality < was.cardinality)
            for name, was in old.items()
        )

    @property
    def marked(self) -> frozenset[str]:
        """The names of the files whose vectors differ."""
        old, new = self.before.vectors, self.after.vectors
        names = old.keys() | new.keys()
        return frozenset(each for each in names if _extent(old, each) != _extent(new, each))


class PaimonChanges(ConnectorChanges):
    """Implements ``ConnectorChanges``; executors read from ``filesystem``."""

    def __init__(self, filesystem: pafs.FileSystem) -> None:
        self._filesystem = filesystem

    def changes(self, table: TableHandle, since: int, *, net: bool) -> TableChanges:
        """The changed files, or changelog files of a table with a primary key."""
        pinned = pinned_table(table)
        refuse_untold(table.name, pinned, net=net)
        refuse_indexes(pinned, table.name)
        if pinned.keyed is None:
            steps = list(_steps(table, pinned, since))
            differing = [
                each for step in _joined(steps, net=net) for each in _differing(pinned, step)
            ]
            for each in differing:
                refuse_file(pinned, table.name, each.native.entry)
            return TableChanges(table, tuple(differing), has_row_ids=pinned.tracks_rows)
        files = tuple(_changelog(table, pinned, since))
        return TableChanges(table, files, "changelog", tuple(pinned.schema.primary_keys))

    def require_told(self, table: TableHandle, *, net: bool) -> None:
        """Refuse tables with a primary key without a changelog, and those with data evolution.

        And, of the ``net`` changes, those of changelogs whose last record of a key is not its row.
        """
        refuse_untold(table.name, pinned_table(table), net=net)

    def require_start(self, table: TableHandle) -> None:
        """Refuse to begin at a snapshot whose changes a later changelog tells again."""
        refuse_start(table.name, pinned_table(table))

    def changed_rows(
        self, spark: SparkSession, changes: TableChanges, files: Sequence[ChangedFile]
    ) -> ArrowRows:
        """The rows of ``files`` by pyarrow."""
        table, pinned = changes.table, pinned_table(changes.table)
        refuse_nanoseconds(table, table.column_names)
        if any(is_avro(each.native.path) for each in files):
            require_avro_reader(spark)
        types = spark_types(spark, table, table.column_names)
        fields = tuple(pa.field(name, arrow_type(kind)) for name, kind in types.items())
        mappings = _mappings(pinned, [each.native.entry for each in files])
        planned = [_planned(number, each) for number, each in enumerate(files)]
        if pinned.keyed is not None:
            schema = keyed_schema(pinned, pinned.keyed)
            log = ChangelogScan(SectionReader(self._filesystem, schema, mappings), fields)
            logs = {n: ChangelogFile(n, _run(pinned, each.native)) for n, each in enumerate(files)}
            return arrow_rows(spark, planned, log, logs)
        parts = {n: _part(pinned, n, each.native) for n, each in enumerate(files)}
        if changes.has_row_ids:
            own = _mappings_with_ids(fields, mappings, parts, files)
            fields = (*fields, COLUMNS.row_id)
            parts = {n: _mapped_by(n, each) for n, each in parts.items()}
            mappings = own
        reader = ChangedScan(ArrowScan(self._filesystem, fields, {}, mappings))
        return arrow_rows(spark, planned, reader, parts)


def _snapshots(table: TableHandle, pinned: PinnedTable, since: int) -> list[Any]:
    """The snapshots from ``since`` to the pinned one.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND: one of them is not there.
    """
    latest = pinned.snapshot
    if latest is None or since > latest.id:
        raise no_history(table.name, since, table.name.branch)
    snapshots = []
    for number in range(since, latest.id):
        snapshot = stored_snapshots.find_snapshot(pinned.table, number)
        if snapshot is None:
            raise no_history(table.name, since, table.name.branch)
        snapshots.append(snapshot)
    return [*snapshots, latest]


def _files(pinned: PinnedTable, snapshot: Any) -> StoredFiles:
    return replace(pinned, snapshot=snapshot).files


def _steps(table: TableHandle, pinned: PinnedTable, since: int) -> Iterator[_Step]:
    first, *others = _snapshots(table, pinned, since)
    before = _State(first, _files(pinned, first).vectors)
    for snapshot in others:
        vectors = before.vectors
        assert before.snapshot is not None  # noqa: S101
        if snapshot.index_manifest != before.snapshot.index_manifest:
            vectors = _files(pinned, snapshot).vectors
        after = _State(snapshot, vectors)
        yield _Step(before, after, manifest_files.changed_entries(pinned.table, snapshot))
        before = after


def _joined(steps: Sequence[_Step], *, net: bool) -> Sequence[_Step]:
    """The steps that change rows; as one, if that is enough.

    That is not so with a compaction between. Nor if a vector has shrunk: one that has grown again
    since then may be as long, and mark other rows.
    """
    changing = [each for each in steps if not each.keeps_rows]
    if not net or len(changing) < 2 or len(changing) < len(steps):
        return changing
    if any(each.unmarks_rows for each in steps):
        return changing
    entries = [entry for each in steps for entry in each.entries]
    return [_Step(steps[0].before, steps[-1].after, entries)]


def _differing(pinned: PinnedTable, step: _Step) -> Iterator[ChangedFile]:
    snapshot = step.after.snapshot
    assert snapshot is not None  # noqa: S101
    old, new = step.before.vectors, step.after.vectors
    added, removed = _added_and_removed(step.entries)
    files = _files(pinned, snapshot)
    for path, entry in files.located(added.values()):
        yield _changed(snapshot, CAME, _Rows(path, entry, new.get(entry.file.file_name)))
    for path, entry in files.located(removed.values()):
        yield _changed(snapshot, GONE, _Rows(path, entry, old.get(entry.file.file_name)))
    marked = step.marked - added.keys() - removed.keys()
    # Files that came and went between have no vectors on either side.
    for path, entry in files.located_entries if marked else ():
        name = entry.file.file_name
        if name in marked:
            was, now = old.get(name), new.get(name)
            if now is not None:
                yield _changed(snapshot, GONE, _Rows(path, entry, now, True, was))
            if was is not None and (now is None or now.cardinality < was.cardinality):
                yield _changed(snapshot, CAME, _Rows(path, entry, was, True, now))


def _added_and_removed(entries: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries of files that are there only after, and only before, by name."""
    added: dict[str, Any] = {}
    removed: dict[str, Any] = {}
    for entry in entries:
        name = entry.file.file_name
        here, there = (added, removed) if entry.kind == ADD else (removed, added)
        if there.pop(name, None) is None:
            here[name] = entry
    return added, removed


def _changelog(table: TableHandle, pinned: PinnedTable, since: int) -> Iterator[ChangedFile]:
    """The changelog files of the snapshots behind ``since``.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND: one has expired, or changed rows without a changelog.
    """
    for snapshot in _snapshots(table, pinned, since)[1:]:
        if snapshot.changelog_manifest_list is None:
            if _changes_untold(pinned, snapshot):
                raise untold_snapshot(table.name, snapshot.id)
            continue
        listed = manifest_files.listed_changelog(pinned.table, snapshot)
        if listed is None:
            raise no_history(table.name, since, table.name.branch)
        entries = [
            entry
            for each in listed
            for entry in manifest_files.manifest_entries(pinned.table, each)
        ]
        for path, entry in _files(pinned, snapshot).located(entries):
            yield _changed(snapshot, CAME, _Rows(path, entry))


def _changes_untold(pinned: PinnedTable, snapshot: Any) -> bool:
    """Whether a snapshot without a changelog changes rows that no later one tells either.

    Paimon's overwrites are in no changelog. What they bring is told by a later compaction, if that
    writes the changelog, but not what they take away.
    """
    is_own = (snapshot.properties or {}).get(STATEMENT) in _TELLING
    if snapshot.commit_kind == "COMPACT" or is_own:
        return False
    entries = manifest_files.changed_entries(pinned.table, snapshot)
    tells_later = pinned.keyed is not None and pinned.keyed.producer != "input"
    return any(
        (each.kind != ADD or not tells_later) and each.bucket != POSTPONED for each in entries
    )


def _changed(snapshot: Any, sign: int, rows: _Rows) -> ChangedFile:
    size = int(rows.entry.file.file_size)
    return ChangedFile(int(snapshot.id), sign, rows.path, str(rows), size, rows)


def _planned(number: int, file: ChangedFile) -> PlannedFile:
    """A file for the packing of tasks."""
    rows: _Rows = file.native
    return PlannedFile(number, rows.path, {}, rows.entry.file.row_count, file.size, {})


def _part(pinned: PinnedTable, number: int, rows: _Rows) -> ChangedPart[ScannedFile]:
    schema_id = pinned.columns.mapped_schema(rows.entry)
    count = rows.entry.file.row_count
    file = ScannedFile(number, rows.path, rows.vector, schema_id, count)
    return ChangedPart(file, file._replace(vector=rows.but) if rows.marks else None)


def _run(pinned: PinnedTable, rows: _Rows) -> RunFile:
    schema_id = pinned.columns.mapped_schema(rows.entry)
    return RunFile(rows.path, 0, (), rows.entry.file.row_count, None, None, schema_id)


def _mappings(pinned: PinnedTable, entries: Sequence[Any]) -> dict[int, tuple[FieldMapping, ...]]:
    """How the columns are found in files that need it, by the files' schemas."""
    found = {int(each.file.schema_id): pinned.columns.mapping_of(each) for each in entries}
    return {number: each for number, each in found.items() if each is not None}


def _mappings_with_ids(
    fields: Sequence[pa.Field],
    mappings: Mapping[int, tuple[FieldMapping, ...]],
    parts: Mapping[int, ChangedPart[ScannedFile]],
    files: Sequence[ChangedFile],
) -> dict[int, tuple[FieldMapping, ...]]:
    """How the columns, and the ids of rows, are found in each file, by its number."""
    plain = tuple(FieldMapping(each, each) for each in fields)
    with_ids = {}
    for number, part in parts.items():
        schema_id = part.file.schema_id
        columns = plain if schema_id is None else mappings[schema_id]
        ids = RowIdentity.of(files[number].native.entry.file).id_mapping
        with_ids[number] = (*columns, ids)
    return with_ids


def _mapped_by(number: int, part: ChangedPart[ScannedFile]) -> ChangedPart[ScannedFile]:
    return part._replace(file=part.file._replace(schema_id=number))


def _extent(vectors: Mapping[str, VectorLocation], name: str) -> tuple[int, int] | None:
    """Vectors only grow while their file lives: one of the same extent is a copy."""
    found = vectors.get(name)
    return None if found is None else (found.length, found.cardinality)
