"""How fsspec opens the file system of a location, from the options of its catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_jobs.contract.hdfs_options import SCHEME as HDFS_SCHEME
from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.contract.locations import scheme_of
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES
from spark_jobs.contract.s3_options import S3Options


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
