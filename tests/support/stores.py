"""S3 servers for tests, on loopback: one in the tests' own process, and a real one.

``moto`` starts in a second and shows behaviour; ``gateway`` (versitygw over a folder) is a server
in use and stands races of several processes. A suite takes the fixtures with
``from tests.object_store.stores import gateway, moto`` in its ``conftest.py``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from spark_jobs.contract.request import CatalogSpec
from tests.support.gateway import gateway_program_or_skip, serving
from tests.support.optional_packages import require_package

REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A running server and the key that it accepts; ``folder`` holds a real server's buckets."""

    name: str
    endpoint: str
    folder: Path | None = None
    access_key: str = "AKIATESTS"
    secret_key: str = field(default="not-a-secret-of-anybody", repr=False)

    def new_bucket(self) -> str:
        """The name of a new, empty bucket."""
        name = f"tests-{uuid.uuid4().hex[:12]}"
        self.client().create_bucket(Bucket=name)
        return name

    def new_catalog(self) -> CatalogSpec:
        """A catalog in a bucket of its own; its secrets are ``credentials``."""
        return self.catalog(f"s3://{self.new_bucket()}/warehouse")

    def catalog(self, warehouse: str) -> CatalogSpec:
        """The catalog of ``warehouse`` as a connection would tell it."""
        options = {"fs.s3.endpoint": self.endpoint, "fs.s3.region": REGION}
        return CatalogSpec("paimon", warehouse, options)

    @property
    def credentials(self) -> dict[str, str]:
        """The secret options of a catalog on this server."""
        return {
            "fs.s3.accessKeyId": self.access_key,
            "fs.s3.accessKeySecret": self.secret_key,
        }

    def filesystem(self) -> pafs.S3FileSystem:
        """pyarrow's own file system of the server; paths begin with the bucket."""
        return pafs.S3FileSystem(
            endpoint_override=self.endpoint,
            region=REGION,
            access_key=self.access_key,
            secret_key=self.secret_key,
        )

    def client(self) -> Any:
        """Amazon's own client of the server."""
        import botocore.session

        return botocore.session.get_session().create_client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
        )

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """All keys of a bucket that begin with ``prefix``, without markers of folders."""
        pages = (
            self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        )
        keys = [each["Key"] for page in pages for each in page.get("Contents", ())]
        return [key for key in keys if not key.endswith("/")]


@pytest.fixture(scope="session")
def moto() -> Iterator[ObjectStore]:
    """A server in this process. It checks no key."""
    with moto_store() as store:
        yield store


@contextmanager
def moto_store() -> Iterator[ObjectStore]:
    """A new server in this process."""
    require_package("moto")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield ObjectStore("moto", f"http://{host}:{port}")
    finally:
        server.stop()


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A real server in a process of its own; skips where it cannot be built."""
    program = gateway_program_or_skip()
    folder = tmp_path_factory.mktemp("gateway")
    store = ObjectStore("gateway", "", folder / "data")
    with serving(program, folder, store.access_key, store.secret_key) as endpoint:
        yield replace(store, endpoint=endpoint)
