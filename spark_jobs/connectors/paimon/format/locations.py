"""Paimon's locations and the corresponding paths in a table's file system.

Never imports a table library.
"""

from __future__ import annotations

from spark_jobs.contract.hdfs_options import SCHEME as HDFS
from spark_jobs.contract.locations import FILE_SCHEME
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES
from spark_jobs.errors import NotSupportedError


def filesystem_path(location: str) -> str:
    """The path of a location: ``/a`` for ``/a`` and ``file:/a``, ``b/k`` for ``s3://b/k``.

    For ``hdfs://host:port/a``, it is ``host:port/a``. Paimon does not percent-encode locations.

    Raises:
        NotSupportedError: the location is on other storage.
    """
    scheme, colon, rest = location.partition(":")
    if location.startswith("/") or not colon:
        return location
    path = rest.removeprefix("//") if rest.startswith("//") else rest
    if scheme in (*S3_SCHEMES, HDFS) and rest.startswith("//"):
        return path.rstrip("/")
    if scheme != FILE_SCHEME or not path.startswith("/"):
        raise NotSupportedError(
            f"{location} is neither on a local file system nor on hdfs:// or s3://, which is all "
            "that is supported.",
            "Run this statement with Paimon's own engines.",
        )
    return path.rstrip("/")


def path_beside(table: str, location: str) -> str:
    """The path of a file at ``location`` that belongs to the table at ``table``.

    Raises:
        NotSupportedError: the file is on other storage than its table.
    """
    if not on_same_storage(table, location):
        raise NotSupportedError(
            f"{location} is on other storage than its table in {table}.",
            "Run this statement with Paimon's own engines.",
        )
    return filesystem_path(location)


def on_same_storage(one: str, other: str) -> bool:
    """Whether both locations are local, on s3://, or in the same HDFS."""
    return _storage(one) == _storage(other)


def _storage(location: str) -> str:
    scheme, _, rest = location.partition(":")
    if scheme in S3_SCHEMES:
        return "s3"
    return f"{HDFS}:{rest.split('/')[2]}" if location.startswith(f"{HDFS}://") else "local"
