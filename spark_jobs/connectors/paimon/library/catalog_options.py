"""pypaimon's options for access to a warehouse, by the names it looks up first. Driver only."""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.contract.s3_options import (
    ACCESS_KEY,
    ENDPOINT,
    REGION,
    SECRET_KEY,
    SESSION_TOKEN,
    S3Options,
)


def catalog_options(access: S3Options | HdfsOptions | None) -> Mapping[str, str]:
    """The options for a warehouse with this access, including secrets."""
    if isinstance(access, S3Options):
        return _s3_options(access)
    if isinstance(access, HdfsOptions):
        # Otherwise pypaimon would try Hadoop's native library if the HDFS client is missing.
        return {**dict(access.config), "hdfs.client.impl": "native"}
    return {}


def _s3_options(access: S3Options) -> dict[str, str]:
    named = {
        ENDPOINT: access.endpoint,
        REGION: access.region,
        ACCESS_KEY: access.access_key,
        SECRET_KEY: access.secret_key,
        SESSION_TOKEN: access.session_token,
    }
    given = {name: value for name, value in named.items() if value}
    return {**given, "s3.path-style-access": str(access.path_style).lower()}
