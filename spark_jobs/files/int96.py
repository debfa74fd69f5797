"""INT96 timestamps hold more than 64 bits of nanoseconds; Arrow wraps around without a word."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.errors import NotSupportedError

_REMEDY = "Change the column to TIMESTAMP(6), or leave the rows of this file alone."


class Int96Guard:
    """Refuses row groups whose INT96 timestamps would not survive a copy through Arrow."""

    def __init__(self, filesystem: pafs.FileSystem, path: str, metadata: pq.FileMetaData) -> None:
        self._path = path
        leaves = [metadata.schema.column(i) for i in range(metadata.num_columns)]
        self._names = [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]
        nested = [name for name in self._names if "." in name]
        if nested:
            raise NotSupportedError(
                f"{path} has INT96 timestamps inside nested values ({', '.join(nested)}).", _REMEDY
            )
        self._micros = pq.ParquetFile(
            filesystem.open_input_file(path), metadata=metadata, coerce_int96_timestamp_unit="us"
        )

    def require_exact(self, number: int, group: pa.Table) -> None:
        """Check row group ``number``, read as ``group``.

        Raises:
            NotSupportedError: a timestamp lies outside the years 1677 to 2262.
        """
        exact = self._micros.read_row_group(number, columns=self._names, use_threads=False)
        for name in self._names:
            floored = pc.floor_temporal(group.column(name), unit="microsecond")
            if not floored.cast(pa.timestamp("us")).equals(exact.column(name)):
                raise NotSupportedError(
                    f"Column {name} of {self._path} has timestamps outside the years 1677 to "
                    "2262, which can not be copied in nanoseconds.",
                    _REMEDY,
                )
