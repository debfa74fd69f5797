"""A job on a local master that has done its work and waits, and where its processes listen."""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.job_lines import asking_operation, named_application
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource
from tests.cluster.processes import descendants, kill, wait_for
from tests.support.paimon_tables import NAME, create

ROOT: Final = Path(__file__).resolve().parents[2]
_LISTENS: Final = "0A"
# Of Spark's protocol between its processes.
_REQUEST, _RESPONSE, _OPEN_BLOCKS = 3, 4, 0
# Seconds that a busy machine may take to answer.
_PATIENCE: Final = 15


@dataclass(frozen=True)
class RunningJob:
    """``application``: its id."""

    pid: int
    application: str

    def listening(self) -> set[tuple[str, int]]:
        """Addresses and ports where its processes take TCP connections."""
        inodes = set()
        for pid in (self.pid, *descendants(self.pid)):
            with suppress(OSError):
                for entry in os.scandir(f"/proc/{pid}/fd"):
                    with suppress(OSError):
                        target = str(Path(entry.path).readlink())
                        inodes.update(re.findall(r"socket:\[(\d+)\]", target))
        return {place for inode, place in _listening() if inode in inodes}

    def opens_blocks(self, port: int) -> bool:
        """Whether who asks for blocks, and proves nothing, is given a stream of them.

        It asks for none, because any block may be forgotten by then.
        """
        body = struct.pack(">B", _OPEN_BLOCKS) + _text(self.application.encode()) + _text(b"driver")
        body += struct.pack(">i", 0)
        message = struct.pack(">Bqi", _REQUEST, 1, len(body)) + body
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), _PATIENCE) as client:
            client.sendall(struct.pack(">q", 8 + len(message)) + message)
            answer = client.recv(9)
            return len(answer) == 9 and answer[8] == _RESPONSE
        return False


@contextmanager
def running_job(folder: Path, **settings: str) -> Iterator[RunningJob]:
    """A job in the new ``folder`` under settings of Spark; underscores stand for dots.

    It asks before it publishes, and nobody answers.
    """
    (folder / "lake").mkdir(parents=True)
    catalog = CatalogSpec("paimon", str(folder / "lake"))
    create(open_connector(catalog, {}), {"id": "bigint"})
    source = SqlSource("q", "SELECT id FROM range(10)")
    request = JobRequest("attacked", NAME, catalog, InsertIntoSpec("q"), (source,))
    (folder / "request.json").write_text(request.to_json())
    given = {"spark_ui_enabled": "false", "spark_driver_memory": "512m", **settings}
    options = " ".join(f"--conf {n.replace('_', '.')}={value}" for n, value in given.items())
    variables = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_SUBMIT_ARGS": f"--master local[2] {options} pyspark-shell",
    }
    command = [sys.executable, "-m", "spark_jobs.main", "--answers", str(folder)]
    command += ["--request", str(folder / "request.json")]
    with (folder / "log").open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=output, stderr=output)
    try:
        yield wait_for("the job's question", lambda: _asking(folder / "log", process))
    finally:
        for pid in (process.pid, *descendants(process.pid)):
            kill(pid)
        process.wait()


def _asking(log: Path, process: subprocess.Popen[bytes]) -> RunningJob | None:
    """The job, once it has asked whether its task still runs."""
    lines = log.read_text().splitlines()
    assert process.poll() is None, lines[-50:]
    told = [found[0] for found in map(named_application, lines) if found]
    return RunningJob(process.pid, told[0]) if any(map(asking_operation, lines)) else None


def _text(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _listening() -> Iterator[tuple[str, tuple[str, int]]]:
    """The inodes of sockets that listen, with address and port."""
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENS:
                host, _, port = fields[1].partition(":")
                # Words of 32 bits in the order of bytes of this machine.
                words = [int(host[i : i + 8], 16) for i in range(0, len(host), 8)]
                packed = struct.pack(f"={len(words)}I", *words)
                yield fields[9], (str(ip_address(packed)), int(port, 16))
