"""Which files of an append table are put together. Driver only.

Follows Paimon's ``AppendCompactCoordinator`` and, in fixed buckets,
``BucketedAppendCompactManager``. A plan takes what it makes into account, so that the next one has
nothing to do, unless new files are much smaller than those that they replace.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.compaction.append_compactor import (
    AppendCompactor,
    AppendFile,
    AppendPart,
)
from spark_jobs.connectors.paimon.compaction.options import CompactionOptions
from spark_jobs.connectors.paimon.format.manifest_entries import (
    BucketKey,
    bucket_key_of,
    numbers_of,
)
from spark_jobs.connectors.paimon.library.table_schema import schema_id
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.paimon.write.table_layout import NamePrefixes, new_file_layout
from spark_jobs.connectors.shared.compaction.bins import (
    BucketFile,
    all_in_bins,
    ordered_bins,
    settled_bins,
)
from spark_jobs.connectors.shared.compaction.plan import PlannedPart, asked_order
from spark_jobs.contract.compaction import CompactedPartition, CompactSpec
from spark_jobs.spi.compaction import WantedPartition
from spark_jobs.spi.tables import TableHandle

# FileSource.COMPACT
_COMPACT: Final = 1
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _Candidates:
    """Looks at the files of a table with the options of a compaction."""

    def __init__(self, table: PinnedTable, options: CompactionOptions) -> None:
        self._table = table
        self._options = options
        self._schema_id = schema_id(table.table)
        self._directories: dict[BucketKey, frozenset[str]] = {}

    def file(self, index: int) -> BucketFile:
        """The file with this index in ``StoredFiles.located_entries``."""
        path, entry = self._table.files.located_entries[index]
        file = entry.file
        vector = self._table.files.vectors.get(file.file_name)
        marked = 0 if vector is None else vector.cardinality
        live_rows = max(file.row_count - marked, 0)
        live_size = math.ceil(file.file_size * live_rows / file.row_count) if file.row_count else 0
        is_flawed = marked > self._options.deleted_share * file.row_count
        if self._options.is_full:
            is_flawed = is_flawed or marked > 0 or not live_rows or self._is_foreign(path, entry)
        return BucketFile(
            index=index,
            order=self._order(path, entry),
            created=_created(file),
            live_rows=live_rows,
            live_size=live_size,
            is_small=self._options.is_small(live_size if is_flawed else file.file_size),
            is_flawed=is_flawed,
            run=self._run(file),
        )

    def _order(self, path: str, entry: Any) -> tuple[Any, ...]:
        """In fixed buckets by sequence number, otherwise by age, as far as it is known.

        What a compaction made has older rows than what writers have added.
        """
        if self._table.bucketing.matters:
            return (*numbers_of(entry), path)
        return (entry.file.file_source != _COMPACT, *_created(entry.file), path)

    def _is_foreign(self, path: str, entry: Any) -> bool:
        """Whether it is not as the table writes new files: other columns, format or directory."""
        if self._table.columns.mapped_schema(entry) is not None:
            return True
        return posixpath.dirname(path) not in self._own_directories(bucket_key_of(entry))

    def _own_directories(self, place: BucketKey) -> frozenset[str]:
        """The directories of new files of a bucket."""
        if place not in self._directories:
            inside, external = self._table.files.bucket_directory(place), self._table.external
            found = {inside}
            if external is not None:
                below = inside.removeprefix(self._table.path)
                found = {f"{root}{below}" for root in external.roots}
            self._directories[place] = frozenset(found)
        return self._directories[place]

    def _run(self, file: Any) -> str | None:
        match = _UUID.search(file.file_name)
        is_of_compaction = file.file_source == _COMPACT and file.schema_id == self._schema_id
        return match[0] if match and is_of_compaction else None


def _created(file: Any) -> tuple[int, int]:
    created = file.creation_time
    if created is None:
        return 0, 0
    return created.get_millisecond(), created.get_nano_of_millisecond()


def append_parts(
    table: PinnedTable, options: CompactionOptions, wanted: WantedPartition
) -> Iterator[PlannedPart]:
    """The parts of an append table's plan, bucket by bucket.

    Each becomes one file, or none; if all rows of the table are sorted, several.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        NotSupportedError: the table's options cannot be honoured.
    """
    candidates = _Candidates(table, options)
    for place, indexes in _buckets(table, wanted).items():
        files = [candidates.file(index) for index in indexes]
        if options.sorts and options.is_full:
            bins = all_in_bins(files, options)
        elif table.bucketing.matters:
            bins = ordered_bins(files, options)
        else:
            bins = settled_bins([file for file in files if file.is_candidate], options)
        for each in bins:
            yield _part(table, place, each, options)


def append_compactor(
    handle: TableHandle,
    spec: CompactSpec,
    filesystem: pafs.FileSystem,
    target_file_size: int,
    prefixes: NamePrefixes,
) -> AppendCompactor:
    """What executors need; new files have names with ``prefixes``, which no others have."""
    table = pinned_table(handle)
    layout = new_file_layout(table, filesystem, target_file_size)
    return AppendCompactor(
        name_prefix=prefixes.data,
        columns=layout.files.schema,
        layout=layout.of_old_rows() if table.tracks_rows else layout,
        mappings=table.files.mappings,
        order=asked_order(handle, spec, layout.files.schema),
    )


def _buckets(table: PinnedTable, wanted: WantedPartition) -> Mapping[BucketKey, list[int]]:
    """The indexes of the files in each bucket of a wanted partition."""
    by_place: dict[BucketKey, list[int]] = defaultdict(list)
    for index, (_, entry) in enumerate(table.files.located_entries):
        by_place[bucket_key_of(entry)].append(index)
    names = table.schema.partition_keys
    asked: dict[tuple[object, ...], bool] = {}
    for place in by_place:
        if place.partition not in asked:
            asked[place.partition] = wanted(dict(zip(names, place.partition, strict=True)))
    return {place: files for place, files in by_place.items() if asked[place.partition]}


def _part(
    table: PinnedTable,
    place: BucketKey,
    files: tuple[BucketFile, ...],
    options: CompactionOptions,
) -> PlannedPart:
    located = [table.files.located_entries[file.index] for file in files]
    vectors = [table.files.vectors.get(entry.file.file_name) for _, entry in located]
    numbers = [numbers_of(entry) for _, entry in located]
    low, high = min(first for first, _ in numbers), max(last for _, last in numbers)
    described = tuple(
        AppendFile(
            file.index,
            path,
            entry.file.row_count,
            entry.file.file_size,
            vector,
            table.columns.mapped_schema(entry),
            table.identity_of(entry),
        )
        for file, (path, entry), vector in zip(files, located, vectors, strict=True)
    )
    rows = sum(file.live_rows for file in files)
    size = sum(file.live_size for file in files)
    count = options.count_of(size) if options.sorts else 0
    expected = CompactedPartition(
        values={},
        files_before=len(files),
        files_after=max(count, 1) if rows else 0,
        bytes_before=sum(file.size for file in described),
        bytes_after=size if rows else 0,
        rows=rows,
        vectors_removed=sum(vector is not None for vector in vectors),
        indexes_lost=sum(
            bool(entry.file.extra_files) or entry.file.embedded_index is not None
            for _, entry in located
        ),
    )
    native = AppendPart(
        place=place,
        directory=table.files.bucket_directory(place),
        files=described,
        numbers=(low, high) if table.bucketing.matters else (0, 0),
        sorted_files=count,
    )
    return PlannedPart(place.partition, tuple(file.index for file in files), native, expected)
