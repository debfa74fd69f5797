"""The HASH index: which keys are in which of a partition's dynamic buckets. Runs on executors.

An index file belongs to one bucket and holds the hash of each of its keys as a big-endian 32-bit
integer (Paimon's ``HashIndexFile``). A key stays in its bucket, even after its row was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.buckets import Hashes, key_hashes, remainders
from spark_jobs.datafiles.runs import codes_of
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.storage.files import read_file

HASH: Final = "HASH"

_HASH_BYTES: Final = 4

Partition = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    """The buckets of a partition.

    ``files`` are the paths of index files by bucket. Keys that none of them has go to the buckets
    ``open``.
    """

    files: Mapping[int, str]
    open: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DynamicBuckets:
    """Looks up the buckets of rows, and chooses those of new keys. Picklable.

    A new key's bucket depends on its hash alone, so that tasks choose the same one. ``key`` has the
    columns of the primary key without the partition keys, typed as in the table's files.
    ``first_open``: the buckets for keys of a partition that is not in ``partitions``.
    """

    filesystem: pafs.FileSystem
    partition_keys: tuple[str, ...]
    key: tuple[pa.Field, ...]
    partitions: Mapping[Partition, PartitionIndex]
    first_open: tuple[int, ...]
    _loaded: dict[Partition, tuple[Hashes, Hashes]] = field(default_factory=dict)

    def __call__(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The bucket (int32, from 0) of each row; ``rows`` has all columns of the key by name.

        Raises:
            CatalogError: METADATA_UNREADABLE: an index file is damaged or gone.
        """
        hashes = key_hashes(rows, self.key)
        buckets = np.empty(rows.num_rows, np.int32)
        for partition, places in rows_by_partition(rows, self.partition_keys):
            buckets[places] = self._buckets(partition, hashes[places])
        return [pa.array(buckets)]

    def _buckets(self, partition: Partition, hashes: Hashes) -> Hashes:
        index = self.partitions.get(partition, PartitionIndex({}, self.first_open))
        chosen = np.array(index.open, np.int32)[remainders(hashes, len(index.open))]
        if partition not in self._loaded:
            self._loaded[partition] = _sorted_index(self.filesystem, index.files)
        known, buckets = self._loaded[partition]
        if not len(known):
            return chosen
        nearest = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        return np.where(known[nearest] == hashes, buckets[nearest], chosen)


@dataclass(frozen=True, slots=True)
class PostponedBuckets:
    """Computes the buckets of rows of a table whose partitions have bucket counts of their own.

    Partitions that are not in ``counts`` get ``first_count``. Picklable.
    """

    partition_keys: tuple[str, ...]
    key: tuple[pa.Field, ...]
    counts: Mapping[Partition, int]
    first_count: int

    def __call__(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The bucket (int32, from 0) of each row; ``rows`` has all columns of the key by name."""
        hashes = key_hashes(rows, self.key)
        buckets = np.empty(rows.num_rows, np.int32)
        for partition, places in rows_by_partition(rows, self.partition_keys):
            count = self.counts.get(partition, self.first_count)
            buckets[places] = remainders(hashes[places], count)
        return [pa.array(buckets)]


def rows_by_partition(
    rows: pa.RecordBatch, partition_keys: tuple[str, ...]
) -> Iterator[tuple[Partition, npt.NDArray[np.int64]]]:
    """The values of each partition, and the places of its rows."""
    if not rows.num_rows:
        return
    columns = [pa.chunked_array([rows.column(name)]) for name in partition_keys]
    codes = np.zeros((rows.num_rows, 1 + len(columns)), np.int64)
    for position, column in enumerate(columns):
        codes[:, position] = codes_of(column)
    _, firsts, groups = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    groups = groups.reshape(-1)
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(len(firsts) + 1))
    for group, first in enumerate(firsts.tolist()):
        partition = tuple(column[first].as_py() for column in columns)
        yield partition, order[bounds[group] : bounds[group + 1]]


def read_hashes(filesystem: pafs.FileSystem, path: str) -> Hashes:
    """The hashes in an index file.

    Raises:
        CatalogError: METADATA_UNREADABLE: the file is damaged or gone.
    """
    try:
        content = read_file(filesystem, path)
    except FileNotFoundError:
        raise _unreadable(path, "does not exist") from None
    if len(content) % _HASH_BYTES:
        raise _unreadable(path, f"has {len(content)} bytes, which is not a multiple of 4")
    return np.frombuffer(content, ">i4").astype(np.int32)


def hash_index_bytes(hashes: Hashes) -> bytes:
    """The content of an index file."""
    return hashes.astype(">i4").tobytes()


def _sorted_index(filesystem: pafs.FileSystem, files: Mapping[int, str]) -> tuple[Hashes, Hashes]:
    """All hashes of a partition in order, and the bucket of each."""
    parts = [(bucket, read_hashes(filesystem, path)) for bucket, path in files.items()]
    none = np.zeros(0, np.int32)
    known = np.concatenate([none, *(hashes for _, hashes in parts)])
    buckets = [np.full(len(hashes), bucket, np.int32) for bucket, hashes in parts]
    order = np.argsort(known, kind="stable")
    return known[order], np.concatenate([none, *buckets])[order]


def _unreadable(path: str, problem: str) -> CatalogError:
    return CatalogError(
        ErrorCode.METADATA_UNREADABLE,
        f"The index file {path} of a dynamic bucket {problem}.",
        "Restore the file, or write the partition anew with INSERT OVERWRITE.",
    )
