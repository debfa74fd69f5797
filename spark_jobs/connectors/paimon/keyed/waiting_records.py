"""Postponed records on their way into their buckets. Runs on executors.

After Paimon's ``PostponeBucketCompactSplitSource``: records are taken as they were written, file by
file, and numbered behind those of their bucket. They wait on the local disk, sorted in runs, so
that memory does not grow with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.connectors.paimon.format.buckets import key_hashes, remainders
from spark_jobs.connectors.paimon.keyed.file_columns import POSITION, SEQUENCE_NUMBER
from spark_jobs.connectors.paimon.keyed.key_order import equal_to_previous
from spark_jobs.connectors.paimon.keyed.section_reader import (
    POSITION_BITS,
    RunFile,
    SectionReader,
)
from spark_jobs.datafiles.decoded_rows import BatchSize
from spark_jobs.datafiles.runs import distinct

# In Arrow bytes.
_BUFFER_BYTES: Final = 64 * 2**20
# Of a run, about this is in memory at once.
_BATCH_BYTES: Final = 2 * 2**20


@dataclass(slots=True)
class _Bucket:
    """The records of one bucket: runs that are stored, and those that are not yet."""

    runs: list[Path]
    pending: list[pa.Table]
    size: int = 0
    count: int = 0


class WaitingRecords:
    """The postponed records of a partition with ``buckets`` buckets; ``folder`` keeps them.

    The columns ``bucket_key`` determine the bucket.
    """

    def __init__(
        self,
        reader: SectionReader,
        bucket_key: Sequence[str],
        buckets: int,
        folder: Path,
        buffer_bytes: int = _BUFFER_BYTES,
    ) -> None:
        self._reader = reader
        self._folder = folder
        self._buffer_bytes = buffer_bytes
        self._buckets = [_Bucket([], []) for _ in range(buckets)]
        self._key = reader.schema.key
        self._bucket_key = [reader.schema.columns.field(name) for name in bucket_key]

    def take(self, files: Sequence[RunFile]) -> None:
        """Read files in the order in which they were written.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE; names the file.
        """
        for file in files:
            for records in self._reader.unordered(file):
                self._route(records)
                if sum(bucket.size for bucket in self._buckets) >= self._buffer_bytes:
                    self._store()
        self._store()

    def count(self, bucket: int) -> int:
        """The number of records that belong into a bucket."""
        return self._buckets[bucket].count

    def runs(self, bucket: int, file_index: int, first: int) -> list[Iterator[pa.Table]]:
        """The records of a bucket as ``SectionReader.windows`` takes them.

        They count as those of file ``file_index``, and are numbered from ``first`` on.
        """
        return [self._run(path, file_index, first) for path in self._buckets[bucket].runs]

    def _route(self, records: pa.Table) -> None:
        places = remainders(key_hashes(records, self._bucket_key), len(self._buckets))
        for number in distinct(places).tolist():
            bucket = self._buckets[number]
            own = records.filter(pa.array(places == number))
            numbers = bucket.count + np.arange(own.num_rows, dtype=np.int64)
            index = own.schema.get_field_index(SEQUENCE_NUMBER)
            bucket.pending.append(own.set_column(index, own.field(index), pa.array(numbers)))
            bucket.size += own.nbytes
            bucket.count += own.num_rows

    def _store(self) -> None:
        """Store what is pending, a sorted run for each bucket."""
        by = [(name, "ascending") for name in (*self._key, SEQUENCE_NUMBER)]
        for number, bucket in enumerate(self._buckets):
            if not bucket.pending:
                continue
            records = pa.concat_tables(bucket.pending)
            order = pc.sort_indices(records.select([name for name, _ in by]), sort_keys=by)
            path = self._folder / f"{number}-{len(bucket.runs)}.arrow"
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, records.schema) as sink:
                most = BatchSize(_BATCH_BYTES, self._reader.window_rows)
                rows = most.rows_of(records.nbytes, records.num_rows)
                sink.write_table(records.take(order).combine_chunks(), rows)
            bucket.runs.append(path)
            bucket.pending, bucket.size = [], 0

    def _run(self, path: Path, file_index: int, first: int) -> Iterator[pa.Table]:
        rest: pa.Table | None = None
        with pa.memory_map(str(path)) as source:
            stored = pa.ipc.open_file(source)
            for number in range(stored.num_record_batches):
                batch = pa.table(stored.get_batch(number))
                records = batch if rest is None else pa.concat_tables([rest, batch])
                # The next batch may have further records of the last key.
                last = int(np.flatnonzero(~equal_to_previous(records, self._key))[-1])
                rest = records.slice(last)
                if last:
                    yield _numbered(records.slice(0, last), file_index, first)
        if rest is not None:
            yield _numbered(rest, file_index, first)


def _numbered(records: pa.Table, file_index: int, first: int) -> pa.Table:
    index = records.schema.get_field_index(SEQUENCE_NUMBER)
    numbers = pa.array(records.column(index).to_numpy() + first)
    place = pa.array(np.full(records.num_rows, file_index << POSITION_BITS, np.int64))
    numbered = records.set_column(index, records.field(index), numbers)
    return numbered.append_column(POSITION, place)
