"""File systems that are not local, through fsspec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.hdfs_options import PACKAGE as HDFS_PACKAGE
from spark_jobs.contract.hdfs_options import SCHEME as HDFS_SCHEME
from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.contract.locations import scheme_of
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES
from spark_jobs.contract.s3_options import S3Options

_EXPIRED: Final = ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired")


def storage_arguments(location: str, options: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of the file system; they hold secrets, as ``options`` do."""
    if scheme_of(location) == HDFS_SCHEME:
        return _hdfs_arguments(HdfsOptions.of(location, options))
    if scheme_of(location) in S3_SCHEMES:
        return _s3_arguments(S3Options.of(options))
    return {}


def _s3_arguments(access: S3Options) -> dict[str, Any]:
    keys = _given(key=access.access_key, secret=access.secret_key, token=access.session_token)
    return {
        **keys,
        "client_kwargs": _given(endpoint_url=access.endpoint, region_name=access.region),
        "config_kwargs": {"s3": {"addressing_style": access.addressing_style}},
        # Others write there too.
        "use_listings_cache": False,
    }


def _hdfs_arguments(access: HdfsOptions) -> dict[str, Any]:
    host, _, port = access.authority.partition(":")
    return {"host": host, "port": int(port) if port.isdecimal() else None, **dict(access.config)}


def _given(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


@contextmanager
def remote_files(location: str, storage_options: Mapping[str, Any]) -> Iterator[Any]:
    """The file system of a location, all of whose failures are OSErrors.

    Raises:
        RequestError: no file system of the location's scheme is installed beside Airflow.
    """
    filesystem = _filesystem(location, storage_options)
    try:
        yield filesystem
    except PermissionError as error:
        if _has_expired(error):
            # Whoever handed it out does so again.
            raise OSError(f"{location} does not accept the key any more: it expired") from error
        raise
    except OSError:
        raise
    except Exception as error:
        if "AccessControlException" in str(error):
            raise PermissionError(f"{location} may not be read or written") from error
        # A client's own exceptions; their texts may tell more than the place.
        raise OSError(f"{location} cannot be reached ({type(error).__name__})") from error


def _has_expired(error: PermissionError) -> bool:
    """Whether Amazon's client refused a key for its age, which it says in what it raised first."""
    answer = getattr(error.__cause__, "response", None) or {}
    return answer.get("Error", {}).get("Code") in _EXPIRED


def _filesystem(location: str, storage_options: Mapping[str, Any]) -> Any:
    import fsspec

    scheme = location.partition("://")[0]
    try:
        if scheme == HDFS_SCHEME:
            _require_hdfs_client(fsspec.get_filesystem_class(scheme))
        return fsspec.filesystem(scheme, **storage_options)
    except (ImportError, ValueError) as error:
        raise invalid(
            "warehouse",
            f"Airflow cannot open {scheme}://: {error}",
            "Install the fsspec file system of that scheme (for s3: s3fs) beside Airflow.",
        ) from error


def _require_hdfs_client(found: type) -> None:
    """Refuse fsspec's own file system, which needs Java and Hadoop's native library."""
    if not found.__module__.startswith("hdfs_native"):
        raise invalid(
            "warehouse",
            "Airflow cannot open hdfs://: the package hdfs-native is not installed beside it",
            f'Install it: pip install "{HDFS_PACKAGE}". The driver and the executors need it too.',
        )
