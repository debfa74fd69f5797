"""Checks that parquet files hold the columns of their schemas, before Spark reads them.

Spark's reader gives NULLs for a column or nested field that a file lacks, and converts some types
silently: a DECIMAL becomes its unscaled digits where the schema says BIGINT. Driver only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.connectors.paimon.library.metadata_checks import reading_metadata
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.recorded_columns import require_recorded
from spark_jobs.storage.parallel import in_parallel

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """Compares the footers of files with schemas, and remembers which columns were compared.

    Data files never change, and a statement may read them several times.
    """

    filesystem: pafs.FileSystem
    _compared: dict[str, frozenset[str]] = field(default_factory=dict, init=False, repr=False)
    _with_other_units: set[str] = field(default_factory=set, init=False, repr=False)

    def require(self, paths: Sequence[str], recorded: Sequence[pa.Field]) -> frozenset[str]:
        """Check that each file holds the columns ``recorded`` of its schema.

        Returns those that all files so far store as they are recorded, also in the unit of times,
        which writers choose.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE: a file is missing or damaged, or does not hold what
                its schema says; METADATA_UNREADABLE: the driver may not read it.
            InternalError: STORAGE_UNAVAILABLE.
        """
        names = frozenset(column.name for column in recorded)
        new = [path for path in paths if not names <= self._compared.get(path, _NONE)]
        in_parallel(partial(self._compare, recorded), new)
        self._compared.update(dict.fromkeys(new, names))
        return names - self._with_other_units

    def _compare(self, recorded: Sequence[pa.Field], path: str) -> None:
        with (
            reading_metadata(path),
            reading_file(path),
            self.filesystem.open_input_file(path) as stream,
        ):
            found = pq.ParquetFile(stream).schema_arrow
            require_recorded(found, recorded)
        for each in recorded:
            if pa.types.is_timestamp(each.type) and found.field(each.name).type != each.type:
                self._with_other_units.add(each.name)
