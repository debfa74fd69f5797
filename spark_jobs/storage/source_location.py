"""Locates the files of sources for Python code in driver and executors. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from spark_jobs.contract.hdfs_options import SCHEME as HDFS_SCHEME
from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.contract.s3_options import SCHEMES, S3Options
from spark_jobs.spi.storage import FileLocation
from spark_jobs.storage.hdfs import hdfs_filesystem
from spark_jobs.storage.s3 import s3_filesystem


def source_location(uri: str, options: Mapping[str, str]) -> FileLocation | None:
    """The location of files on s3:// or hdfs://, accessed with the catalog's keys and options.

    None for other schemes, and for hdfs:// if its client is not installed.
    """
    scheme, separator, path = uri.partition("://")
    if not separator:
        return None
    if scheme.lower() in SCHEMES:
        return FileLocation(s3_filesystem(S3Options.of(options)), path.rstrip("/"))
    if scheme.lower() == HDFS_SCHEME and find_spec("hdfs_native"):
        return FileLocation(hdfs_filesystem(HdfsOptions.of(uri, options)), path.rstrip("/"))
    return None
