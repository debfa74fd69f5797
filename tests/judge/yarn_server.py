"""Apache's own YARN on loopback: a ResourceManager and a NodeManager, each in its own process.

A suite takes the fixture with ``from tests.judge.yarn_server import yarn`` in its ``conftest.py``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

import psutil
import pytest

from tests.judge.serving import serving
from tests.judge.toolchain import JudgeMissingError, Toolchain
from tests.judge.yarn_toolchain import yarn_toolchain
from tests.support.ports import free_ports
from tests.support.waiting import wait_for

_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Duser.timezone=UTC",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",  # Guice makes classes
)
_MANAGER = "yarn.resourcemanager"
_NODE = "yarn.nodemanager"
_ADDRESSES = ("address", "scheduler.address", "admin.address", "resource-tracker.address",
              "webapp.address")  # fmt: skip
_QUEUES = "yarn.scheduler.capacity"
_MONITOR = f"{_MANAGER}.monitor.capacity.preemption"
QUEUES = ("default", "other")
MEMORY = 4096


@dataclass
class Yarn:
    """A running YARN with one node; all its files are in ``folder``.

    ``settings`` are those of its daemons and its clients.
    """

    toolchain: Toolchain
    folder: Path
    settings: Mapping[str, str]
    manager: int = 0
    node: int = 0
    _node: ExitStack = field(default_factory=ExitStack)

    @property
    def address(self) -> str:
        """Of the ResourceManager's pages and REST API."""
        return f"http://{self.settings[f'{_MANAGER}.webapp.address']}"

    @property
    def conf(self) -> Path:
        """What clients take as HADOOP_CONF_DIR."""
        return self.folder / "conf"

    @property
    def containers(self) -> Path:
        """Where the node has the files of its containers, launch scripts among them."""
        return self.folder / "local"

    @property
    def logs(self) -> Path:
        """Where the node has, and keeps, the logs of its containers."""
        return self.folder / "logs"

    def start_node(self) -> None:
        """Start the node, which has none yet or was lost."""
        self.node = int(self._node.enter_context(self._daemon("nm")))

    def stop_node(self) -> None:
        """End the node's daemon, if it runs, and with it its containers."""
        self._node.close()

    def lose_node(self) -> None:
        """Kill the node's daemon alone: its containers go on."""
        daemon = psutil.Process(self.node)
        daemon.kill()
        self._node.close()

    def processes(self) -> list[psutil.Process]:
        """Those of all containers: YARN tells them their folders below its own."""
        return [each for each in psutil.process_iter() if self._is_own(each)]

    def end_processes(self) -> None:
        """Kill what is left of containers."""

        def none_is_left() -> bool:
            left = self.processes()
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            return not left

        wait_for("the end of all containers", none_is_left)

    @contextmanager
    def started(self) -> Iterator[Yarn]:
        """Runs for as long as the context lasts; nothing of it is left then."""
        self.conf.mkdir()
        _write(self.conf / "yarn-site.xml", self.settings)
        _write(self.conf / "core-site.xml", {"fs.defaultFS": "file:///"})
        with self._daemon("rm") as manager:
            self.manager = int(manager)
            try:
                self.start_node()
                yield self
            finally:
                self.stop_node()
                self.end_processes()

    def _daemon(self, role: str) -> AbstractContextManager[str]:
        path = f"{self.conf}{os.pathsep}{self.toolchain.classpath}"
        return serving([self.toolchain.java, *_OPTIONS, "-cp", path, "YarnDaemon", role])

    def _is_own(self, process: psutil.Process) -> bool:
        try:
            return str(self.containers) in process.environ().get("LOCAL_DIRS", "")
        except (psutil.Error, OSError):
            return False


@contextmanager
def yarn_server(toolchain: Toolchain, **settings: str) -> Iterator[Yarn]:
    """A new YARN with a node of MEMORY megabytes."""
    with tempfile.TemporaryDirectory(prefix="yarn-") as name:
        folder = Path(name)
        with Yarn(toolchain, folder, {**_settings(folder), **settings}).started() as running:
            yield running


@pytest.fixture(scope="session")
def yarn() -> Iterator[Yarn]:
    """YARN for the whole run; skips where that cannot run, with the reason."""
    try:
        toolchain = yarn_toolchain()
    except JudgeMissingError as missing:
        pytest.skip(f"no YARN: {missing}")
    with yarn_server(toolchain) as running:
        yield running


def _settings(folder: Path) -> dict[str, str]:
    ports = free_ports(len(_ADDRESSES))
    addresses = {
        f"{_MANAGER}.{name}": f"localhost:{port}"
        for name, port in zip(_ADDRESSES, ports, strict=True)
    }
    nodes = {
        f"{_NODE}.{name}": "localhost:0"
        for name in ("address", "localizer.address", "collector-service.address", "webapp.address")
    }
    return {
        **addresses,
        **nodes,
        "hadoop.tmp.dir": str(folder / "tmp"),
        f"{_MANAGER}.hostname": "localhost",
        f"{_MANAGER}.nodemanagers.heartbeat-interval-ms": "200",
        # After so long a node that says nothing is lost.
        "yarn.nm.liveness-monitor.expiry-interval-ms": "15000",
        f"{_NODE}.hostname": "localhost",
        f"{_NODE}.local-dirs": str(folder / "local"),
        f"{_NODE}.log-dirs": str(folder / "logs"),
        f"{_NODE}.resource.memory-mb": str(MEMORY),
        f"{_NODE}.vmem-check-enabled": "false",
        f"{_NODE}.pmem-check-enabled": "false",
        f"{_NODE}.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.scheduler.maximum-allocation-mb": str(MEMORY),
        f"{_QUEUES}.root.queues": ",".join(QUEUES),
        f"{_QUEUES}.maximum-am-resource-percent": "1.0",
        **_shared(QUEUES),
        # A queue takes its half back from the other.
        f"{_MANAGER}.scheduler.monitor.enable": "true",
        f"{_MONITOR}.monitoring_interval": "500",
        f"{_MONITOR}.max_wait_before_kill": "500",
        f"{_MONITOR}.total_preemption_per_round": "1.0",
        f"{_MONITOR}.natural_termination_factor": "1.0",
    }


def _shared(queues: Sequence[str]) -> dict[str, str]:
    """Equal parts of the node; each may have all of it while nobody else wants it."""
    part = {
        "capacity": str(100 / len(queues)),
        "maximum-capacity": "100",
        "user-limit-factor": str(len(queues)),
    }
    return {
        f"{_QUEUES}.root.{queue}.{name}": value for queue in queues for name, value in part.items()
    }


def _write(file: Path, settings: Mapping[str, str]) -> None:
    properties = (
        f"  <property><name>{name}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    )
    file.write_text(f"<configuration>\n{''.join(properties)}</configuration>\n")
