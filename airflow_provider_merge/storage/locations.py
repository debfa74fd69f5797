"""Where files lie: plain paths, ``file:`` URIs, and URIs of other stores."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from spark_jobs.contract.hdfs_options import SCHEME as HDFS
from spark_jobs.contract.locations import FILE_SCHEME, scheme_of
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES


def is_local(location: str) -> bool:
    """True for a plain path, which is absolute, and for ``file:`` URIs."""
    return location.startswith(("/", "file:")) or "://" not in location


def local_path(location: str) -> Path:
    """The path behind a plain path or a ``file:`` URI; only in a URI anything is encoded."""
    is_uri = location.startswith("file:")
    return Path(unquote(urlsplit(location).path) if is_uri else location)


def child(folder: str, name: str) -> str:
    """The location of ``name``, in which nothing is encoded, in ``folder``."""
    part = quote(name, safe="") if folder.startswith("file:") else name
    return f"{folder.rstrip('/')}/{part}"


def is_hdfs(location: str) -> bool:
    """True for URIs of HDFS."""
    return location.startswith(f"{HDFS}://")


def store_of(location: str) -> tuple[str, str]:
    """The kind of a location's store, and its bucket or host; ``("file", "")`` for this machine."""
    if is_local(location):
        uri = urlsplit(location) if location.startswith("file:") else None
        return FILE_SCHEME, uri.netloc if uri and uri.netloc != "localhost" else ""
    scheme = scheme_of(location)
    authority = location.partition("://")[2].partition("/")[0]
    return S3_SCHEMES[0] if scheme in S3_SCHEMES else scheme, authority
