"""Keeps the HASH index of the dynamic buckets that a sink writes to. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.buckets import Hashes, key_hashes
from spark_jobs.connectors.paimon.format.hash_index import (
    DynamicBuckets,
    hash_index_bytes,
    read_hashes,
)
from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey
from spark_jobs.connectors.paimon.format.vectors import write_index
from spark_jobs.connectors.paimon.keyed.key_order import equal_to_previous
from spark_jobs.datafiles.row_id import FILE_FIELD
from spark_jobs.datafiles.runs import distinct
from spark_jobs.datafiles.values import encode_value
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spi import rows

# Paimon keeps the numbers of dynamic buckets in 16 bits.
MOST_BUCKETS: Final = 2**15


@dataclass(frozen=True, slots=True)
class BucketIndexes:
    """The index at the base snapshot, and how a write stores new files of it. Picklable.

    ``name_prefix`` begins the names of index files, which belong in ``directory`` (None: beside the
    data files). ``replaces``: buckets are written as if they were empty. A bucket that is new in
    its partition takes ``target_keys`` keys, if its partition may have another one below
    ``most_buckets``.
    """

    buckets: DynamicBuckets
    filesystem: pafs.FileSystem
    name_prefix: str
    directory: str | None
    replaces: bool
    target_keys: int
    most_buckets: int

    def step(self, place: BucketKey) -> int:
        """The distance to the bucket that follows ``place`` when that is full; 0: none does."""
        known = self.buckets.partitions.get(place.partition)
        if known is None:
            step = len(self.buckets.first_open)
        else:
            step = 0 if place.bucket in known.files else 1
        return step if place.bucket + step < self.most_buckets else 0

    def hashes_at_base(self, place: BucketKey) -> Hashes:
        """The hashes of the keys that a bucket has had.

        Raises:
            CatalogError: METADATA_UNREADABLE: the index file is damaged or gone.
        """
        known = self.buckets.partitions.get(place.partition)
        if self.replaces or known is None or place.bucket not in known.files:
            return np.zeros(0, np.int32)
        return read_hashes(self.buckets.filesystem, known.files[place.bucket])


class BucketIndex:
    """The index of one bucket, to which keys are added in their order."""

    def __init__(self, indexes: BucketIndexes, place: BucketKey) -> None:
        self._indexes = indexes
        self._place = place
        self._identity = [field.name for field in indexes.buckets.key]
        self._step = indexes.step(place)
        self._left = indexes.target_keys
        self._inserted: list[Hashes] = []

    @property
    def next_place(self) -> BucketKey:
        """The bucket for the keys that this one does not take."""
        return self._place._replace(bucket=self._place.bucket + self._step)

    def take(self, changes: pa.Table) -> int:
        """Add the keys of change rows; returns how many of the rows the bucket takes.

        Change rows come in key order, all those of a key together.
        """
        taken: int = changes.num_rows
        if self._step:
            starts = np.flatnonzero(~equal_to_previous(changes, self._identity))
            if len(starts) > self._left:
                taken = int(starts[self._left])
            self._left -= min(self._left, len(starts))
        is_insert = changes.column(rows.OPERATION).to_numpy()[:taken] == rows.INSERT
        inserted = changes.slice(0, taken).filter(pa.array(is_insert))
        if inserted.num_rows:
            hashes = key_hashes(inserted.select(self._identity), self._indexes.buckets.key)
            self._inserted.append(distinct(hashes))
        return taken

    def finish(self, new_path: Callable[[], str]) -> dict[str, Any] | None:
        """Store the index if it has new hashes; returns the JSON data of its file.

        Raises:
            CatalogError: METADATA_UNREADABLE: the index file at the base is damaged or gone.
        """
        if not self._inserted:
            return None
        inserted = distinct(*self._inserted)
        old = self._indexes.hashes_at_base(self._place)
        new = inserted[~np.isin(inserted, old)]
        if not len(new):
            return None
        content = hash_index_bytes(np.concatenate([old, new]))
        path = new_path()
        write_index(self._indexes.filesystem, path, content)
        return {
            "partition": [encode_value(value) for value in self._place.partition],
            "bucket": self._place.bucket,
            "path": path,
            "size": len(content),
            "hashes": len(old) + len(new),
        }


def require_own_rows(ordinals: Collection[int], place: BucketKey, changes: pa.Table) -> None:
    """Check that changed rows are in the bucket, of ``ordinals``, that the index says they are in.

    Raises:
        CatalogError: METADATA_UNREADABLE; names the bucket.
    """
    changed = changes.filter(pc.is_valid(changes.column(rows.ROW_ID)))
    if not changed.num_rows:
        return
    found = pc.struct_field(changed.column(rows.ROW_ID), FILE_FIELD)
    if not set(pc.unique(found).to_pylist()) <= set(ordinals):
        raise CatalogError(
            ErrorCode.METADATA_UNREADABLE,
            f"The HASH index says that rows are in bucket {place.bucket} of partition "
            f"{place.partition}, but they are in another one.",
            "Write the partition anew with INSERT OVERWRITE in Paimon's own engines.",
        )
