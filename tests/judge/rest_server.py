"""Paimon's own server of REST catalogs, with which it tests its clients, in a process of its own.

It is in the jar of paimon-core's tests, keeps its catalog in memory and the tables in a folder. A
suite takes the fixture with ``from tests.judge.rest_server import rest`` in its ``conftest.py``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from spark_jobs.contract.request import CatalogSpec
from tests.judge.serving import serving
from tests.judge.toolchain import Jar, JudgeMissingError, Toolchain, prepare

_NAME = "lake"
_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")
_JARS = (
    Jar(
        "org.apache.paimon:paimon-core:1.4.2:jar:tests",
        "32c20f4e60255fb897d56214fd267013feb0ac6bdedd4f4406be2175dc9f6fad",
    ),
    Jar(
        "com.squareup.okhttp3:mockwebserver:4.12.0",
        "6784673687f4ac8f21679b9d4bc7cdb46e1a1ce1be9d3133b36bede59a741561",
    ),
    Jar(
        "com.squareup.okhttp3:okhttp:4.12.0",
        "b1050081b14bb7a3a7e55a4d3ef01b5dcfabc453b4573a4fc019767191d5f4e0",
    ),
    Jar(
        "com.squareup.okio:okio-jvm:3.6.0",
        "67543f0736fc422ae927ed0e504b98bc5e269fda0d3500579337cb713da28412",
    ),
    Jar(
        "org.jetbrains.kotlin:kotlin-stdlib:1.9.10",
        "55e989c512b80907799f854309f3bc7782c5b3d13932442d0379d5c472711504",
    ),
    Jar(
        "junit:junit:4.13.2",
        "8e495b634469d64fb8acfa3495a065cbacc8a0fff55ce1e31007be4c16dc57d3",
    ),
)


@dataclass(frozen=True, slots=True)
class RestCatalog:
    """A running server; its tables lie in ``folder``."""

    uri: str
    folder: Path
    token: str = field(repr=False)

    def spec(self, options: Mapping[str, str] | None = None) -> CatalogSpec:
        """The catalog as a connection tells it; its secrets are ``credentials``."""
        named = {"metastore": "rest", "uri": self.uri, "rest.warehouse": _NAME}
        return CatalogSpec("paimon", str(self.folder), {**named, **(options or {})})

    @property
    def credentials(self) -> dict[str, str]:
        """The secret options of the catalog."""
        return {"token": self.token}


def rest_toolchain() -> Toolchain:
    """What the server runs on.

    Raises:
        JudgeMissingError: there is no JDK, or a jar cannot be fetched.
    """
    return prepare(("RestServer",), _JARS)


@contextmanager
def rest_catalog(toolchain: Toolchain) -> Iterator[RestCatalog]:
    """A new, empty catalog."""
    token = "not-a-token-of-anybody"
    with tempfile.TemporaryDirectory() as name:
        command = [toolchain.java, *_OPTIONS, "-cp", toolchain.classpath, "RestServer", name, _NAME]
        with serving(command, first_line=token) as uri:
            yield RestCatalog(uri, Path(name), token)


@pytest.fixture(scope="session")
def rest() -> Iterator[RestCatalog]:
    """A catalog on a server of its own; skips where that cannot run, with the reason."""
    try:
        toolchain = rest_toolchain()
    except JudgeMissingError as missing:
        pytest.skip(f"no REST catalog: {missing}")
    with rest_catalog(toolchain) as catalog:
        yield catalog
