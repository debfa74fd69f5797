"""A job on a local master that is at work until it is killed, and where its processes listen."""

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

from spark_jobs.contract.application_line import told_application
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource
from tests.cluster.processes import descendants, kill, wait_for

ROOT: Final = Path(__file__).resolve().parents[2]
# Hours of work, with a broadcast of the smaller side.
_LONG: Final = (
    "SELECT sum(hash(a.id, b.id)) AS s FROM range(1000000000) a CROSS JOIN range(100000) b"
)
_LISTENS: Final = "0A"
# Of Spark's protocol between its processes.
_REQUEST, _RESPONSE, _OPEN_BLOCKS = 3, 4, 0


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
        """Whether who asks for a broadcast's block, and proves nothing, is answered."""
        names = [self.application.encode(), b"driver"]
        body = struct.pack(">B", _OPEN_BLOCKS) + b"".join(map(_text, names))
        body += struct.pack(">i", 1) + _text(b"broadcast_0_piece0")
        message = struct.pack(">Bqi", _REQUEST, 1, len(body)) + body
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as client:
            client.sendall(struct.pack(">q", 8 + len(message)) + message)
            answer = client.recv(9)
            return len(answer) == 9 and answer[8] == _RESPONSE
        return False


@contextmanager
def running_job(folder: Path, **settings: str) -> Iterator[RunningJob]:
    """A job in the new ``folder`` under settings of Spark; underscores stand for dots."""
    (folder / "lake").mkdir(parents=True)
    catalog = CatalogSpec("paimon", str(folder / "lake"))
    source = SqlSource("q", _LONG)
    request = JobRequest("attacked", None, catalog, QuerySpec("q"), (source,))
    (folder / "request.json").write_text(request.to_json())
    given = {"spark_ui_enabled": "false", "spark_driver_memory": "512m", **settings}
    options = " ".join(f"--conf {n.replace('_', '.')}={value}" for n, value in given.items())
    variables = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_SUBMIT_ARGS": f"--master local[2] {options} pyspark-shell",
    }
    command = [sys.executable, "-m", "spark_jobs.main", "--request", str(folder / "request.json")]
    with (folder / "log").open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=output, stderr=output)
    try:
        found = wait_for("the job's start", lambda: _told(folder / "log", process))
        # Which takes a broadcast.
        wait_for("the first task", lambda: any(map(_is_daemon, descendants(process.pid))))
        yield RunningJob(process.pid, found[0])
    finally:
        for pid in (process.pid, *descendants(process.pid)):
            kill(pid)
        process.wait()


def _told(log: Path, process: subprocess.Popen[bytes]) -> tuple[str, str] | None:
    text = log.read_text()
    assert process.poll() is None, text[-5000:]
    return next(filter(None, map(told_application, text.splitlines())), None)


def _is_daemon(pid: int) -> bool:
    """Whether this process starts Spark's Python workers."""
    try:
        return b"daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


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
