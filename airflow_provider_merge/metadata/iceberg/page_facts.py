"""What the pages about tables show of an Iceberg table; the names are the specification's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from airflow_provider_merge.metadata.differing_files import (
    DifferingFiles,
    RowColumn,
    RowFile,
    obstacle_of,
)
from airflow_provider_merge.metadata.iceberg.base_notes import BaseNotes
from airflow_provider_merge.metadata.iceberg.manifests import TableFile
from airflow_provider_merge.metadata.iceberg.partitions import DifferingPartition
from airflow_provider_merge.metadata.iceberg.snapshots import IcebergSnapshot
from airflow_provider_merge.metadata.iceberg.table import IcebergTable
from airflow_provider_merge.metadata.model import CompactionFacts
from airflow_provider_merge.metadata.page_facts import (
    TABLES_OWN,
    Expiry,
    FileChange,
    Hold,
    Ref,
    Totals,
)
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.iceberg.compaction import CompactionThresholds, refuse_uncompactable
from spark_jobs.formats.iceberg.expiry import Limits, expiring
from spark_jobs.formats.iceberg.holds import Base, held
from spark_jobs.formats.iceberg.refused_properties import refuse_target

_MOST_REFS: Final = 200
_DIGITS: Final = 19
_CHANGE: Final = (
    "added-data-files",
    "deleted-data-files",
    "added-files-size",
    "removed-files-size",
    "added-records",
    "deleted-records",
)
_MARKED: Final = "Files of deletes mark rows of its files, and are not read here."


@dataclass(frozen=True)
class IcebergPageFacts:
    """More of the metadata of ``table``.

    ``notes`` are of operations at work; None: the connection names no workspace that jobs can use.
    """

    table: IcebergTable
    notes: BaseNotes | None = None

    def writer(self, snapshot: IcebergSnapshot) -> str:
        """The engine that the summary names."""
        names = (snapshot.properties.get(each, "") for each in ("engine-name", "engine-version"))
        return " ".join(filter(None, names))

    def rows(self, snapshot: IcebergSnapshot) -> tuple[int, int] | None:
        """What the summary says."""
        change = self.change(snapshot)
        if change is None or snapshot.keeps_rows:
            return None if change is None else (0, 0)
        return change.records_added, change.records_removed

    def totals(self, snapshot: IcebergSnapshot) -> Totals | None:
        """What the summary says of data files."""
        files = _number(snapshot.properties.get("total-data-files"))
        size = _number(snapshot.properties.get("total-files-size"))
        return None if files is None or size is None else Totals(files, size)

    def change(self, snapshot: IcebergSnapshot) -> FileChange | None:
        """What the summary says; it leaves out what is 0."""
        summary = snapshot.properties
        if not any(name in summary for name in (*_CHANGE, "total-records")):
            return None
        return FileChange(*(_number(summary.get(name)) or 0 for name in _CHANGE))

    def refs(self) -> list[Ref]:
        """Branches but the own one, by their heads, and tags."""
        found = sorted(self.table.loaded.metadata.refs.items())
        refs = [
            Ref(name, "tag" if str(each.snapshot_ref_type) == "tag" else "branch", each.snapshot_id)
            for name, each in found[:_MOST_REFS]
        ]
        own = self.table.branch.name
        return [each for each in refs if (each.kind, each.name) != ("branch", own)]

    def holds(self) -> list[Hold]:
        """Operations at work, by the snapshots on which they build."""
        first = min(self.table.loaded.metadata.snapshots, key=_age, default=None)
        # One that found no snapshot keeps all.
        ids = {
            name: each.snapshot_id or (first and first.snapshot_id)
            for name, each in self._at_work().items()
        }
        return [Hold(name, "operation", each) for name, each in ids.items() if each is not None]

    def _at_work(self) -> Mapping[str, Base]:
        if self.notes is None:
            return {}
        return self.notes.at_work(self.table.loaded.metadata.table_uuid)

    def schema_ids(self) -> list[int]:
        """The ids of all schemas."""
        return [each.schema_id for each in self.table.loaded.metadata.schemas]

    def compaction(self, snapshot: IcebergSnapshot) -> list[CompactionFacts]:
        """By the table's property."""
        return self.table.compaction_facts(CompactSpec(), {}, snapshot)

    def differing_files(
        self, before: IcebergSnapshot, after: IcebergSnapshot
    ) -> list[DifferingFiles]:
        """Those of partitions without deletes."""
        return differing_files(self.table, before, after)

    def row_columns(self, snapshot: IcebergSnapshot) -> list[RowColumn]:
        """Those of its schema, by their ids."""
        columns = self.table.schema(snapshot.schema_id).columns
        return [RowColumn(each.name, each.type, each.field_id) for each in columns]

    def file_options(self, location: str) -> Mapping[str, Any]:
        """Those of the catalog, or of the table's server."""
        return self.table.loaded.files.options(location)

    def refuse_compaction(self, spec: CompactSpec) -> None:
        """By its version and its properties."""
        metadata = self.table.loaded.metadata
        refuse_target(self.table.name, metadata.format_version, metadata.properties)
        refuse_uncompactable(self.table.name, metadata)
        CompactionThresholds.of(spec, metadata.properties)

    def expiry(self, now_millis: int, spec: ExpireSnapshotsSpec = TABLES_OWN) -> Expiry:
        """By the properties ``history.expire.*``: those of the branch that expire."""
        metadata = self.table.loaded.metadata
        now = datetime.fromtimestamp(now_millis / 1000, UTC)
        limits = Limits.of(spec, metadata.properties, now)
        gone = set(expiring(metadata, limits, held(metadata, self._at_work())).snapshots)
        ids = [each.snapshot_id for each in self.table.branch.newest_first()][::-1]
        stays = [each for each in ids if each not in gone]
        return Expiry(
            [each for each in ids if each in gone], stays[0] if stays else 0, limits.texts()
        )


def _age(snapshot: Any) -> int:
    return int(snapshot.timestamp_ms)


def _number(text: str | None) -> int | None:
    is_number = text is not None and text.isascii() and text.isdecimal() and len(text) <= _DIGITS
    return int(text) if text is not None and is_number else None


def differing_files(
    table: IcebergTable, before: IcebergSnapshot, after: IcebergSnapshot
) -> list[DifferingFiles]:
    """See ``PageFacts``.

    Raises:
        NotSupportedError: a row may be in one partition before, and in another after.
    """
    differing = list(table.differing(before, after))
    specs = {file.spec_id for each in differing for file in (*each.removed, *each.added)}
    if len(specs) > 1:
        raise NotSupportedError(
            f"The partitioning of {table.name} changed between the files of the two snapshots.",
            "Compare the table at both snapshots with a query.",
        )
    return [_of(each, table.location) for each in differing]


def _of(partition: DifferingPartition, folder: str) -> DifferingFiles:
    name = partition_name(partition.values)
    removed, added = partition.removed, partition.added
    if _is_marked(partition, [*removed, *added]):
        return DifferingFiles(name, (), (), _MARKED)
    gone, come = (tuple(map(_row_file, some)) for some in (removed, added))
    return DifferingFiles(name, gone, come, obstacle_of([*gone, *come], folder))


def _is_marked(partition: DifferingPartition, differing: Iterable[TableFile]) -> bool:
    """Whether deletes concern the files, or differ in what they mark elsewhere."""
    old, new = partition.old_deletes, partition.new_deletes
    if any(each.touch(differing) for each in (old, new)):
        return True
    paths = {each.path for each in partition.new}
    common = [each for each in partition.old if each.path in paths]
    return bool(old.of_files(common) != new.of_files(common))


def _row_file(file: TableFile) -> RowFile:
    return RowFile(file.path, file.format, file.size, file.rows)
