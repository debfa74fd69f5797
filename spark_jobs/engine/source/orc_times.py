"""Why Spark fails on a whole ORC file: times before 1970 as the C++ library of ORC writes them.

pyarrow and pandas write them with a negative fraction of a second, which Java's library does not
read. Driver only; only after a failure, because it takes reading the times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyarrow import orc

from spark_jobs.contract.source_names import source_text
from spark_jobs.engine.runtime.nested_arrays import parts
from spark_jobs.errors import NotSupportedError

if TYPE_CHECKING:
    from spark_jobs.engine.source.source_files import SourceFiles

_SECOND: Final = 1_000_000_000


def refuse_old_times(files: SourceFiles) -> None:
    """Look for a time that Spark does not read.

    Raises:
        NotSupportedError: names the file and the column.
    """
    if files.source.format.lower() != "orc" or files.filesystem is None:
        return
    for file in files.files:
        try:
            with files.filesystem.open_input_file(file.path) as stream:
                column = _old_column(orc.ORCFile(stream))
        except (OSError, pa.ArrowException):
            continue
        if column is not None:
            raise NotSupportedError(
                f"{source_text(files.source)}: {file.name}: column {column} has times before 1970 "
                "with parts of a second, which Spark does not read as pyarrow writes them to ORC "
                "files.",
                "Write Parquet files, or leave the column out.",
            )


def _old_column(file: orc.ORCFile) -> str | None:
    names: list[str] = [field.name for field in file.schema if _has_times(field.type)]
    for stripe in range(file.nstripes if names else 0):
        rows = file.read_stripe(stripe, columns=names)
        for name, column in zip(names, rows.columns, strict=True):
            if any(map(_is_old, _times(column))):
                return name
    return None


def _is_old(times: pa.Array) -> bool:
    values = times.cast(pa.timestamp("ns")).cast(pa.int64()).drop_null().to_numpy()
    return bool(np.any((values < 0) & (values % _SECOND != 0)))


def _has_times(kind: pa.DataType) -> bool:
    below = [kind.field(index).type for index in range(kind.num_fields)]
    return pa.types.is_timestamp(kind) or any(map(_has_times, below))


def _times(values: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_timestamp(values.type):
        yield values
    else:
        for part in parts(values):
            yield from _times(part)
