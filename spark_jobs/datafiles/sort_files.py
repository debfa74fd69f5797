"""Puts the rows of data files into new files, in the order of a key. Runs on executors.

Memory: some row groups in Arrow form. Beyond these, rows wait on the local disk, where they take
about the space of the files that are read, in Arrow form with a fast compression.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.datafiles.concatenate import InputFile, read_rows
from spark_jobs.datafiles.parquet.group_writer import GroupWriter
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.datafiles.sorted_runs import SortedRuns
from spark_jobs.spi.writes import RowOrder

NewPath = Callable[[], str]


def sort_files(
    filesystem: pafs.FileSystem,
    inputs: Iterable[InputFile],
    order: RowOrder,
    count: int,
    new_path: NewPath,
    files: NewFiles,
) -> list[WrittenFile]:
    """Write the rows of ``inputs`` to ``count`` new files of about as many rows each, in order.

    There are fewer files if there are fewer rows. Raises as ``concatenate``.
    """
    with TemporaryDirectory(prefix="sort-") as folder:
        runs = SortedRuns(order, Path(folder), files.row_group_bytes)
        for source in inputs:
            read_rows(filesystem, source, files, runs.add_rows)
        rows_of_file = math.ceil(runs.row_count / count)
        return list(_written(runs.rows(), rows_of_file, new_path, files))


def _written(
    tables: Iterable[pa.Table], rows_of_file: int, new_path: NewPath, files: NewFiles
) -> Iterator[WrittenFile]:
    """Files with ``rows_of_file`` rows each; the last one has what is left."""
    writer, room = None, 0
    try:
        for table in tables:
            start = 0
            while start < table.num_rows:
                if writer is None:
                    writer, room = _opened(new_path(), files), rows_of_file
                part = table.slice(start, room)
                writer.add_rows(part)
                start, room = start + part.num_rows, room - part.num_rows
                if not room and (written := writer.finish()):
                    yield written
                    writer = None
        if writer is not None and (written := writer.finish()):
            yield written
    except BaseException:
        if writer is not None:
            writer.close_quietly()
        raise


def _opened(path: str, files: NewFiles) -> GroupWriter:
    return GroupWriter(
        filesystem=files.filesystem,
        path=path,
        schema=files.schema,
        compression=files.compression,
        row_group_bytes=files.row_group_bytes,
    )
