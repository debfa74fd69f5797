"""The data files of an append table as a compaction sees them. Driver only."""

from __future__ import annotations

import math
import posixpath
import re
from typing import Any, Final

from spark_jobs.connectors.paimon.compaction.options import CompactionOptions
from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.format.sequence_numbers import bucket_key_of, numbers_of
from spark_jobs.connectors.paimon.library.table_schema import schema_id
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.compaction.bins import BucketFile

# FileSource.COMPACT
_COMPACT: Final = 1
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Candidates:
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
