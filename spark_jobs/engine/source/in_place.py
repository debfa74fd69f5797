"""Sources that are read where they are, as often as a statement reads them.

Only if every reading certainly yields the same rows: tables are pinned, and whoever reads files
checks afterwards that they are still those that were listed (``require_unchanged``). Queries, and
files that only Spark can read, are evaluated once instead (``materialized``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.analysis.char_columns import noted_lengths
from spark_jobs.engine.source.copied_files import CopiedFiles, copied_files
from spark_jobs.engine.source.materialized import MaterializedSource
from spark_jobs.engine.source.open_source import OpenSource
from spark_jobs.engine.source.source_files import SourceFiles
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle

# More files are checked and sampled too slowly.
_MOST_FILES: Final = 100
_SAMPLES: Final = 4
# Object stores tell seconds: a younger file could be written again without a trace.
_SETTLED_AFTER: Final = 10.0


def in_place(
    spark: SparkSession, source: OpenSource, columns: Iterable[str], connector: Connector
) -> MaterializedSource | None:
    """``columns`` of ``source`` as it is; None if it has to be materialised.

    ``byte_size`` is estimated from the first rows of some files.
    """
    listed = source.listed
    if source.table is None and (listed is None or len(listed.files) > _MOST_FILES):
        return None
    frame = source.frame.selectExpr(*map(quote, sorted(columns)))
    # Spark compares columns that it knows as CHAR in another way.
    if noted_lengths(frame.schema):
        return None
    try:
        if source.table is not None:
            return _table(spark, source.table, frame, source.connector or connector)
        if source.files is None or listed is None:
            return None
        files = copied_files(spark, source.files, frame, source.location)
        if files is None or not is_settled(files.filesystem, files.files):
            return None
        return _files(files, frame, listed)
    except RuntimeError:  # what cannot be read here, or at all, is left to tasks and their errors
        return None


def _table(
    spark: SparkSession, table: TableHandle, frame: DataFrame, connector: Connector
) -> MaterializedSource | None:
    files = connector.metadata.plan_files(table)
    if not all(file.has_exact_count for file in files):
        return None
    rows = connector.scan.arrow_rows(spark, table, files, frame.columns)
    if rows is None:
        return None
    count = sum(file.live_row_count for file in files)
    return MaterializedSource(
        frame=frame,
        row_count=count,
        byte_size=_estimated_bytes(rows, count, len(frame.columns)),
        files={},
        stored_names={},
        filesystem=connector.storage.filesystem,
    )


def _files(files: CopiedFiles, frame: DataFrame, listed: SourceFiles) -> MaterializedSource:
    rows = files.rows(range(len(frame.columns)), len(files.files))
    size = _estimated_bytes(rows, files.row_count, len(frame.columns))
    # Later rows may be larger than the first ones.
    size = max(size, files.decompressed_bytes)
    share = size / max(files.byte_size, 1)
    return MaterializedSource(
        frame=frame,
        row_count=files.row_count,
        byte_size=size,
        files={file.path: int(file.size * share) for file in files.files},
        stored_names={name: name for name in frame.columns},
        filesystem=files.filesystem,
        listed=listed,
    )


def is_settled(filesystem: pafs.FileSystem, files: Iterable[pafs.FileInfo]) -> bool:
    """Whether any later change of ``files`` shows in their size or modification time."""
    if isinstance(filesystem, pafs.LocalFileSystem):
        return True
    latest = time.time() - _SETTLED_AFTER
    return all(file.mtime_ns is not None and file.mtime_ns / 1e9 < latest for file in files)


def _estimated_bytes(rows: ArrowRows, row_count: int, columns: int) -> int:
    """The bytes of all rows as Arrow, if all are as large as the largest among some first rows."""
    tasks = len(rows.files)
    chosen = sorted({tasks * number // _SAMPLES for number in range(_SAMPLES)}) if tasks else []
    sizes = [_first_row_bytes(rows, task, columns) for task in chosen]
    return int(max(sizes, default=0) * row_count)


def _first_row_bytes(rows: ArrowRows, task: int, columns: int) -> float:
    """The average bytes of a row in the first batch of a task."""
    for batch in rows.function([pa.RecordBatch.from_pydict({"task": [task]})]):
        if batch.num_rows:
            return float(sum(each.nbytes for each in batch.columns[:columns]) / batch.num_rows)
    return 0.0
