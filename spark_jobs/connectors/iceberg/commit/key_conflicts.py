"""Whether equality deletes that others committed are about rows of a write. Driver only.

A file that replaces an older one is newer than deletes that were committed meanwhile: these would
not apply to its rows any more. And who inserts a row because there was none of its key must not do
so beside a writer that has stored one, which deletes the key before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

import numpy as np

from spark_jobs.connectors.iceberg.commit.changes import Changes
from spark_jobs.connectors.iceberg.commit.data_files import NewDataFile
from spark_jobs.connectors.iceberg.format.deletes import DeletedRows
from spark_jobs.connectors.iceberg.format.equality import KeyFiles
from spark_jobs.connectors.iceberg.format.transforms import unscaled
from spark_jobs.connectors.iceberg.format.values import big_endian
from spark_jobs.connectors.iceberg.read.scanned_files import scanned
from spark_jobs.connectors.iceberg.table.commits import OtherCommit
from spark_jobs.connectors.iceberg.table.live_files import LiveFile, may_apply
from spark_jobs.connectors.iceberg.table.manifests import ADDED, ManifestEntry
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.contract.request import TableName
from spark_jobs.datafiles.file_changes import Positions

_NONE: Final[Positions] = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class KeyConflicts:
    """Compares keys with rows of the ``changes`` to the base ``table``, called ``name``.

    ``_harmless`` are the snapshots whose keys have been compared: a later attempt skips them.
    """

    name: TableName
    table: PinnedTable
    changes: Changes
    _harmless: set[int] = field(default_factory=set)

    def found(self, commit: OtherCommit, *, among_added: bool) -> bool:
        """Whether a key is that of a row in a changed file; ``among_added``: or of an added row.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE, METADATA_UNREADABLE.
            NotSupportedError: deletes cannot be read here; gives the reason.
        """
        if commit.snapshot.snapshot_id in self._harmless:
            return False
        paths = {each.path for each in self.changes.touched}
        files = [each for each in self.table.files if each.entry.path in paths]
        if among_added:
            files += (self._added(each) for each in self.changes.added)
        if any(self._hit(files, commit.equality_deletes)):
            return True
        self._harmless.add(commit.snapshot.snapshot_id)
        return False

    def _hit(self, files: Iterable[LiveFile], deletes: Sequence[ManifestEntry]) -> Iterator[bool]:
        """For each file with a row that has one of the keys, whether such a row is live."""
        filesystem = self.table.storage.filesystem
        known, keys = DeletedRows(filesystem), KeyFiles(filesystem)
        everywhere = self.table.unpartitioned
        for file in files:
            new = tuple(each for each in deletes if may_apply(each, file.entry, everywhere))
            wanted = scanned(self.table, self.name, 0, replace(file, equality_deletes=new)).deletes
            if wanted.by_value is None:
                continue
            hit = keys.positions(wanted.by_value, wanted.row_count, _NONE)
            if len(hit):
                gone = known.positions(scanned(self.table, self.name, 0, file).deletes)
                yield not np.isin(hit, gone).all()

    def _added(self, file: NewDataFile) -> LiveFile:
        """A new file as if it were in a manifest."""
        partition = {
            key: big_endian(unscaled(value)) if isinstance(value, Decimal) else value
            for key, value in file.partition.items()
        }
        entry = ManifestEntry(ADDED, None, 0, None, file.spec_id, partition, file.record, "")
        return LiveFile(entry, self.table.storage.path(entry.path))
