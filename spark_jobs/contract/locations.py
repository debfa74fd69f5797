"""The storage of absolute paths and URIs; operator and job read them the same way."""

from __future__ import annotations

from typing import Final, Literal

from spark_jobs.contract.checks import require
from spark_jobs.contract.hdfs_options import SCHEME as HDFS_SCHEME
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES

# The fields of a catalog that name a folder.
Place = Literal["warehouse", "workspace"]

FILE_SCHEME: Final = "file"
# Schemes of storage on which jobs can publish a snapshot.
WAREHOUSE_SCHEMES: Final = (FILE_SCHEME, *S3_SCHEMES, HDFS_SCHEME)


def scheme_of(location: str) -> str:
    """The scheme of a location in lower case; ``file`` for a path."""
    scheme, separator, _ = location.partition("://")
    return scheme.lower() if separator else FILE_SCHEME


def require_absolute(field: str, location: str) -> None:
    """Refuse what is neither an absolute path nor a URI.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    require(
        location.startswith("/") or "://" in location,
        field,
        f"{location!r} is not an absolute path or URI",
        "A relative path means another folder on each machine: write /path or scheme://path.",
    )
