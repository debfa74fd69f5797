"""Neighbours on the network, and other users of the machine: who can reach a job's processes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address
from pathlib import Path

import pytest

from spark_jobs.engine.runtime.surroundings import protected
from tests.attacks.running_job import running_job

LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.authenticate": "true",
}
AUTHENTICATED = {"spark.authenticate": "true"}
SETTINGS: Mapping[str, tuple[dict[str, str], dict[str, str]]] = {
    "one thread": ({"spark.master": "local"}, LOCAL),
    "threads": ({"spark.master": "local[*]"}, LOCAL),
    "failures": ({"spark.master": "local[2,3]"}, LOCAL),
    "a cluster in one process": ({"spark.master": "local-cluster[1,1,512]"}, {}),
    "standalone": ({"spark.master": "spark://host:7077"}, {}),
    "Kubernetes": ({"spark.master": "k8s://https://host"}, AUTHENTICATED),
    "YARN": ({"spark.master": "yarn", "spark.submit.deployMode": "client"}, AUTHENTICATED),
    "YARN's own driver": ({"spark.master": "yarn", "spark.submit.deployMode": "cluster"}, {}),
    "YARN's own shuffles": (
        {"spark.master": "yarn", "spark.shuffle.service.enabled": "true"},
        {},
    ),
}

linux = pytest.mark.skipif(sys.platform != "linux", reason="sockets are listed in /proc")


def _is_loopback(address: str) -> bool:
    found = ip_address(address)
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return (mapped or found).is_loopback


@linux
@pytest.mark.slow
def test_a_local_job_listens_to_this_machine_alone_and_asks_who_speaks(tmp_path: Path) -> None:
    with running_job(tmp_path / "job") as job:
        found = job.listening()
        opened = [port for _, port in found if job.opens_blocks(port)]

    assert found
    assert [place for place in found if not _is_loopback(place[0])] == []
    assert opened == []


@linux
@pytest.mark.slow
def test_without_a_secret_a_stranger_is_answered(tmp_path: Path) -> None:
    # What the test above means by an answer, and that users' own settings stay.
    with running_job(tmp_path / "job", spark_authenticate="false") as job:
        opened = [port for _, port in job.listening() if job.opens_blocks(port)]

    assert len(opened) == 1


@pytest.mark.parametrize(("settings", "own"), SETTINGS.values(), ids=SETTINGS)
def test_what_protects_a_job(settings: dict[str, str], own: dict[str, str]) -> None:
    assert protected(settings) == own
    # What the cluster or the user sets stays.
    assert not protected({**settings, **dict.fromkeys(LOCAL, "theirs")})
