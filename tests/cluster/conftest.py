"""A standalone cluster for the whole run; a fresh warehouse and job folder for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.cluster.merging", "tests.conformance.check")

from tests.cluster.merging import ClusterMerges  # noqa: E402 - after the registration
from tests.cluster.standalone import EXECUTOR_PYTHON, Cluster  # noqa: E402
from tests.conformance.paimon_harness import PaimonHarness  # noqa: E402


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    assert EXECUTOR_PYTHON.exists(), "run `make setup-executor`"
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("seeds")


@pytest.fixture
def merges(cluster: Cluster, seeds: Path, tmp_path: Path) -> Iterator[ClusterMerges]:
    """Runs merges on the cluster, each on a fresh copy of its table."""

    def harness(table, partitioned):  # type: ignore[no-untyped-def]
        seed = seeds / f"{table.name}-{partitioned}"
        if not seed.exists():
            seed.mkdir()
            PaimonHarness(None, seed, partitioned=partitioned).create(table)
        copy = tmp_path / "warehouse"
        shutil.copytree(seed, copy)
        return PaimonHarness(None, copy, partitioned=partitioned)

    merges = ClusterMerges(cluster, harness, tmp_path / "submission")
    yield merges
    merges.stop()
