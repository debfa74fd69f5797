"""A part whose position deletes are written anew, as its publication sees it. Driver only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from spark_jobs.connectors.iceberg.commit.data_files import NewDataFile, new_delete_file
from spark_jobs.connectors.iceberg.read.planning import named_partition
from spark_jobs.connectors.iceberg.table.live_files import LiveFile
from spark_jobs.connectors.iceberg.table.manifests import FileKey, ManifestEntry
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.shared.compaction.plan import texts_of
from spark_jobs.contract.compaction import CompactedPartition
from spark_jobs.spi.compaction import PartResult


@dataclass(frozen=True, slots=True)
class RewrittenDeletes:
    """``before`` are the data files, ``after`` their new files of deletes.

    A new file has the highest sequence number of those that it replaces: it is about one data file,
    to which all of them applied.
    """

    result: PartResult
    before: Sequence[LiveFile]
    after: Sequence[NewDataFile]

    @classmethod
    def of(cls, table: PinnedTable, result: PartResult) -> RewrittenDeletes:
        """The part with this ``result``; ``table`` is as it was when the part was planned."""
        documents = [fragment.document["compacted"] for fragment in result.fragments]
        before = [table.lean_files[index] for each in documents for index in each["files"]]
        after = []
        for document in (file for each in documents for file in each["added"]):
            marked = table.lean_files[document["file"]]
            number = max(each.sequence_number for each in marked.deletes)
            after.append(new_delete_file(table, document, marked.entry).of_number(number))
        return cls(result, before, after)

    @property
    def removed(self) -> Mapping[FileKey, ManifestEntry]:
        """The files of deletes that go."""
        return {each.key: each for file in self.before for each in file.deletes}

    @property
    def replaced(self) -> Sequence[FileKey]:
        """The files that no other part may replace."""
        return list(self.removed)

    def is_lost(
        self, table: PinnedTable, gone: Collection[FileKey], deletes: Sequence[ManifestEntry]
    ) -> bool:
        """Whether others have removed one of its files; new ``deletes`` are not in the way."""
        del table, deletes
        return any(key in gone for key in (*self.removed, *(f.entry.key for f in self.before)))

    def did(self, table: PinnedTable) -> CompactedPartition:
        """What the part did to files of deletes, as a share of what its partition did."""
        first, removed = self.before[0].entry, self.removed.values()
        is_placed = first.spec_id == table.metadata.default_spec_id
        values = named_partition(table, first.spec_id, first.partition) if is_placed else {}
        return CompactedPartition(
            values=texts_of(values),
            files_before=len(removed),
            files_after=len(self.after),
            bytes_before=sum(each.size for each in removed),
            bytes_after=sum(each.size for each in self.after),
            rows=sum(each.row_count for each in self.after),
            vectors_removed=len(removed),
        )
