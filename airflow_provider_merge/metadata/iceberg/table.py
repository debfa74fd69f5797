"""Everything that an Iceberg table's metadata tells, without Spark or a JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_merge.metadata.iceberg.compaction import CompactionReader
from airflow_provider_merge.metadata.iceberg.manifests import DATA, DELETES, Manifest, Manifests
from airflow_provider_merge.metadata.iceberg.partition_filter import IcebergPartitionFilter
from airflow_provider_merge.metadata.iceberg.partitions import (
    Deletes,
    DifferingPartition,
    by_name,
    facts_of,
    key_of,
    values_of,
)
from airflow_provider_merge.metadata.iceberg.schemas import IcebergSchema, Schemas, Spec
from airflow_provider_merge.metadata.iceberg.snapshots import Branch, IcebergSnapshot
from airflow_provider_merge.metadata.model import (
    CompactionFacts,
    PartitionChange,
    PartitionFacts,
    TableSchema,
    Tag,
)
from airflow_provider_merge.storage.failures import unreadable
from airflow_provider_merge.storage.locations import child
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.contract.properties import OPERATION_ID, STATEMENT
from spark_jobs.contract.request import TableName
from spark_jobs.contract.undone import PARTIAL, Undone
from spark_jobs.errors import CatalogError, ErrorCode, JobError
from spark_jobs.formats.iceberg.compaction import CompactionThresholds, refuse_uncompactable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_merge.metadata.iceberg.catalogs import LoadedTable
    from airflow_provider_merge.metadata.iceberg.snapshots import IcebergHistory


@dataclass(frozen=True)
class IcebergTable:
    """The table ``name`` as it was when it was loaded; only its manifests are read later."""

    name: TableName
    loaded: LoadedTable

    @classmethod
    def of(cls, name: TableName, loaded: LoadedTable) -> IcebergTable:
        """The table, or the branch of it that ``<table>$branch_<name>`` means.

        Raises:
            CatalogError: TABLE_NOT_FOUND: it has no such branch.
        """
        table = cls(name, loaded)
        if not table.branch.exists():
            raise CatalogError(
                ErrorCode.TABLE_NOT_FOUND,
                f"there is no table {name}: it has no branch {table.branch.name}",
                "Correct the branch's name.",
            )
        return table

    @property
    def location(self) -> str:
        """Where the table's files are, as it says itself."""
        return str(self.loaded.metadata.location)

    @property
    def published_folders(self) -> tuple[str, ...]:
        """Where each commit makes files."""
        folder = self.loaded.metadata.properties.get("write.metadata.path")
        return (str(folder or child(self.location, "metadata")),)

    @cached_property
    def branch(self) -> Branch:
        """The snapshots."""
        return Branch(self.loaded.metadata, self.name.branch)

    def latest(self) -> IcebergSnapshot | None:
        """The newest snapshot; None for a table without one."""
        return self.branch.latest()

    def snapshot(self, snapshot_id: int) -> IcebergSnapshot | None:
        """The retained snapshot of this id; None: it never was, has expired or was rolled back."""
        return self.branch.snapshot(snapshot_id)

    def history(self, newest: IcebergSnapshot | None) -> IcebergHistory:
        """The retained snapshots up to ``newest``."""
        return self.branch.history(newest)

    def made_by(self, operation_id: str) -> IcebergSnapshot | None:
        """The newest snapshot of an operation; None: none of those that are retained.

        One that was taken back since is none. A compaction makes a snapshot for each of its groups,
        an undo one in each table, of which none tells whether it has come to its end.
        """
        undone = Undone()
        for snapshot in self.branch.newest_first():
            properties = snapshot.properties
            counts = undone.counts(properties) and properties.get(STATEMENT) not in PARTIAL
            if counts and properties.get(OPERATION_ID) == operation_id:
                return snapshot
        return None

    def tags(self) -> list[str]:
        """The names of all tags, sorted."""
        return self.branch.tags()

    def tag(self, name: str) -> Tag | None:
        """The tag of this name; None: there is none."""
        snapshot = self.branch.tagged(name)
        return None if snapshot is None else Tag(name, snapshot)

    def branches(self) -> list[str]:
        """The names of all branches but the main one, sorted."""
        return self.branch.others()

    def schema(self, schema_id: int | None = None) -> IcebergSchema:
        """The schema of an id, or the newest one."""
        schema = Schemas(self.loaded.metadata).schema(schema_id)
        if schema is None:
            raise unreadable(self.location, f"has no schema {schema_id}")
        return schema

    def partition_filter(
        self, schema: TableSchema, values: Mapping[str, Any]
    ) -> IcebergPartitionFilter:
        """The filter for values that are given as text or in the field's own type."""
        return IcebergPartitionFilter.of(Schemas(self.loaded.metadata).fields, values)

    def partitions(
        self, wanted: Mapping[str, Any] | None = None, snapshot: IcebergSnapshot | None = None
    ) -> list[PartitionFacts]:
        """The partitions that a snapshot (by default the newest) has rows in, sorted by name.

        ``wanted`` has values of some fields of the newest spec, as text or in their own types; a
        file of another spec without one of them is in no such partition. A table without partitions
        has one, without values, once it has data.
        """
        chosen = self.partition_filter(self.schema(), wanted or {})
        snapshot = snapshot or self.latest()
        if snapshot is None:
            return []
        found, deletes = self._by_name(snapshot, chosen)
        facts = [facts_of(values, files, deletes) for values, files in found.values()]
        return sorted(facts, key=lambda each: each.name)

    def compaction_facts(
        self,
        spec: CompactSpec,
        wanted: Mapping[str, Any] | None = None,
        snapshot: IcebergSnapshot | None = None,
    ) -> list[CompactionFacts]:
        """What a compaction by ``spec`` would find; errors as in ``partitions``.

        Files of older partition specs are together in facts without values; ``wanted`` leaves them
        out, as a compaction of some partitions does.
        """
        chosen = self.partition_filter(self.schema(), wanted or {})
        snapshot = snapshot or self.latest()
        metadata = self.loaded.metadata
        refuse_uncompactable(self.name, metadata)
        thresholds = CompactionThresholds.of(spec, metadata.properties)
        if snapshot is None:
            return []
        found, deletes = self._by_name(snapshot, chosen)
        reader = CompactionReader(
            deletes, thresholds, metadata.default_spec_id, is_partitioned=bool(chosen.fields)
        )
        facts = reader.facts(found.values(), are_all=not wanted)
        return sorted(facts, key=lambda each: each.name)

    def row_count(self, snapshot: IcebergSnapshot | None = None) -> int | None:
        """The rows that a reader of a snapshot (by default the newest) finds.

        None: only reading can tell: files of deletes may mark the same row, or rows of any file.
        """
        snapshot = snapshot or self.latest()
        if snapshot is None:
            return 0
        manifests = self._manifests.listed(snapshot.manifest_list)
        counts = [None if each.content == DELETES else each.rows for each in manifests]
        if None not in counts:
            return sum(count or 0 for count in counts)
        everything = self.partition_filter(self.schema(), {})
        found, deletes = self._by_name(snapshot, everything, manifests)
        return deletes.visible([file for _, files in found.values() for file in files])

    def touched(self, snapshot: IcebergSnapshot) -> list[Mapping[str, str | None]]:
        """The partitions in which a snapshot added, removed or marked rows; sorted.

        One that only rewrote files has touched none. Deletes by value that are in no partition may
        mark rows of all.
        """
        if snapshot.keeps_rows:
            return []
        specs, own = self._specs, snapshot.snapshot_id
        listed = self._manifests.listed(snapshot.manifest_list)
        changed = [each for each in listed if each.added_by in (own, None)]
        touched: dict[Any, Mapping[str, str | None]] = {}
        with self._decoding():
            for file in self._manifests.entries(changed):
                if file.by != own:
                    continue
                if file.content != DATA and file.marks is None and not file.partition:
                    return [each.values for each in self.partitions(snapshot=snapshot)]
                values = values_of(specs[file.spec_id], file.partition)
                touched[key_of(file)] = values
        distinct = {partition_name(each): each for each in touched.values()}
        return [distinct[name] for name in sorted(distinct)]

    def diff(self, before: IcebergSnapshot, after: IcebergSnapshot) -> list[PartitionChange]:
        """What two snapshots differ in, by partition; those that do not differ are left out."""
        return [
            PartitionChange(
                values=partition.values,
                files_added=len(partition.added),
                files_removed=len(partition.removed),
                rows_before=partition.old_deletes.visible(partition.old),
                rows_after=partition.new_deletes.visible(partition.new),
            )
            for partition in self.differing(before, after)
        ]

    def differing(
        self, before: IcebergSnapshot, after: IcebergSnapshot
    ) -> Iterator[DifferingPartition]:
        """The partitions that differ, by name."""
        everything = self.partition_filter(self.schema(), {})
        (old, old_deletes), (new, new_deletes) = (
            self._by_name(each, everything) for each in (before, after)
        )
        for name in sorted(old.keys() | new.keys()):
            gone, come = (side[name][1] if name in side else [] for side in (old, new))
            if old_deletes.of_files(gone) != new_deletes.of_files(come):
                values = (new if name in new else old)[name][0]
                yield DifferingPartition(values, gone, come, old_deletes, new_deletes)

    @property
    def _specs(self) -> Mapping[int, Spec]:
        return Schemas(self.loaded.metadata).specs()

    @property
    def _manifests(self) -> Manifests:
        widths = {spec_id: len(spec) for spec_id, spec in self._specs.items()}
        return Manifests(self.loaded.files, widths)

    def _by_name(
        self,
        snapshot: IcebergSnapshot,
        chosen: IcebergPartitionFilter,
        manifests: Sequence[Manifest] | None = None,
    ) -> tuple[dict[str, Any], Deletes]:
        """The data files of each partition that is asked for, with its values; and the deletes."""
        specs = self._specs
        if manifests is None:
            manifests = self._manifests.listed(snapshot.manifest_list)
        with self._decoding():
            read = [each for each in manifests if _is_needed(each, chosen, specs)]
            files = [each for each in self._manifests.entries(read) if each.is_live]
            found = by_name(files, specs)
            kept = {name: each for name, each in found.items() if chosen.fits(each[0])}
        return kept, Deletes.of(each for each in files if each.content != DATA)

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        try:
            yield
        except (JobError, OSError):
            raise
        except (ValueError, ArithmeticError, LookupError, TypeError) as error:
            problem = f"holds a partition that cannot be read: {repr(error)[:200]}"
            raise unreadable(self.location, problem) from None


def _is_needed(
    manifest: Manifest, chosen: IcebergPartitionFilter, specs: Mapping[int, Spec]
) -> bool:
    """Whether a manifest can list files of a partition that is asked for, or deletes for it."""
    spec = specs.get(manifest.spec_id, ())
    return chosen.may_hold(manifest, spec) or (manifest.content == DELETES and not spec)
