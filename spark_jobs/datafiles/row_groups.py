"""The row groups of a data file, whatever its format.

A stripe of an ORC file counts as a row group, as do some blocks of an Avro file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from spark_jobs.datafiles import orc
from spark_jobs.datafiles.avro import row_groups as avro
from spark_jobs.datafiles.decoded_rows import BatchSize
from spark_jobs.datafiles.file_formats import is_avro, is_orc
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet import row_groups as parquet


class RowGroup(Protocol):
    """Some consecutive rows of a file, whose columns are decoded on demand."""

    @property
    def row_count(self) -> int:
        """The number of rows."""

    def may_hold(self, name: str, probe: KeyProbe) -> bool:
        """False if no row of the column can have one of the probe's values."""

    def column(self, name: str) -> pa.ChunkedArray:
        """A column for all rows, as decoded; raises ``pa.ArrowInvalid`` if there is none."""

    def values(self, name: str, decoded: pa.Array) -> pa.Array:
        """Some rows of a column, from those of ``column``."""

    def parts(self, names: Sequence[str], most: BatchSize) -> Iterator[RowGroup]:
        """All rows in batches with only the columns ``names``, which are decoded one by one.

        The formats differ in what is in memory beside a batch: of parquet the current pages, of ORC
        the stripe.
        """


def row_groups(
    path: str,
    stream: pa.NativeFile,
    recorded: Collection[pa.Field],
    most: BatchSize | None = None,
) -> Iterator[RowGroup]:
    """The row groups of the open file at ``path``, in order.

    ``recorded`` are the columns to read, as the schema of the file has them. ``most``, if given, is
    the size of the ``parts`` in which they will be read.

    Raises:
        pa.ArrowInvalid: the file is damaged, or does not hold these columns of its schema.
        NotSupportedError: one of them has INT96 timestamps that cannot be read rightly.
    """
    if is_orc(path):
        return orc.stripes(stream, recorded)
    if is_avro(path):
        return avro.row_groups(stream, recorded, None if most is None else most.size)
    return parquet.row_groups(path, stream, recorded, most)
