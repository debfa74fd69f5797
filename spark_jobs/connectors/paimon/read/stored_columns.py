"""Checks that parquet files hold the columns of their schemas, and whether Spark can read them.

Spark's reader gives NULLs for a column or nested field that a file lacks, and converts some types
silently: a DECIMAL becomes its unscaled digits where the schema says BIGINT. Driver only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.connectors.paimon.library.metadata_checks import reading_metadata
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.recorded_columns import require_recorded
from spark_jobs.spark_reads.readable_files import columns_not_for_spark
from spark_jobs.storage.parallel import in_parallel


@dataclass(frozen=True, slots=True)
class _Compared:
    """The columns of a file that were compared.

    ``others`` are those that Spark does not read, ``units`` those with times of another unit than
    recorded: writers choose it.
    """

    names: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    units: frozenset[str] = frozenset()


_NONE = _Compared()


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """Compares the footers of files with schemas, and remembers which columns were compared.

    Data files never change, and a statement may read them several times.
    """

    filesystem: pafs.FileSystem
    _compared: dict[str, _Compared] = field(default_factory=dict, init=False, repr=False)

    def for_spark(self, paths: Sequence[str], recorded: Sequence[pa.Field]) -> Collection[str]:
        """Those of ``paths`` whose columns Spark reads; each must hold ``recorded``, its schema's.

        Raises:
            NotSupportedError: a file does not hold what its schema says; names file and column.
            CatalogError: DATA_FILE_UNREADABLE: a file is missing or damaged; METADATA_UNREADABLE:
                the driver may not read it.
            InternalError: STORAGE_UNAVAILABLE.
        """
        names = frozenset(column.name for column in recorded)
        new = [path for path in paths if not names <= self._compared.get(path, _NONE).names]
        found = in_parallel(partial(self._compare, recorded), new)
        self._compared.update(zip(new, found, strict=True))
        return {path for path in paths if not names & self._compared.get(path, _NONE).others}

    def exact(self, paths: Sequence[str], recorded: Sequence[pa.Field]) -> frozenset[str]:
        """Those of the columns ``recorded`` that all files, compared before, store as recorded."""
        others = frozenset[str]().union(*(self._compared.get(path, _NONE).units for path in paths))
        return frozenset(column.name for column in recorded) - others

    def _compare(self, recorded: Sequence[pa.Field], path: str) -> _Compared:
        with (
            reading_metadata(path),
            reading_file(path),
            self.filesystem.open_input_file(path) as stream,
        ):
            metadata = pq.ParquetFile(stream).metadata
            stored_schema = metadata.schema.to_arrow_schema()
            require_recorded(stored_schema, recorded)
            wanted = {each.name: each.type for each in recorded}
            units = frozenset(
                name
                for name, kind in wanted.items()
                if pa.types.is_timestamp(kind) and stored_schema.field(name).type != kind
            )
            return _Compared(frozenset(wanted), columns_not_for_spark(metadata, wanted), units)
