"""A data file as sinks see it. Runs on executors."""

from __future__ import annotations

import posixpath
from typing import NamedTuple

from spark_jobs.connectors.paimon.format.row_tracking import RowIdentity
from spark_jobs.connectors.paimon.format.vectors import VectorLocation


class SourceFile(NamedTuple):
    """A file that the statement may change; ``size`` is in bytes.

    ``place`` numbers the buckets of all partitions, which may share folders; ``bucket`` is the
    number within the partition. ``directory`` is the table directory for other files; None: beside
    this one. ``schema_id`` is None if its columns are the table's.
    ``identity`` tells its rows' ids, if the table tracks them. A tuple, because every task
    unpickles all files of the statement.
    """

    path: str
    row_count: int
    size: int
    place: int
    bucket: int
    vector: VectorLocation | None = None
    directory: str | None = None
    schema_id: int | None = None
    identity: RowIdentity | None = None

    @property
    def folder(self) -> str:
        """The table directory for files that replace or accompany this one."""
        return self.directory or posixpath.dirname(self.path)
