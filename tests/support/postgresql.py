"""A PostgreSQL server of Debian's packages, in a folder of its own, while a test needs it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.ports import free_port
from tests.support.waiting import wait_for

_DEBIAN = Path("/usr/lib/postgresql")
# PostgreSQL refuses to run as root; Debian's packages make this user.
_USER = "postgres"


class NotInstalledError(Exception):
    """There is no PostgreSQL server on this machine."""


def programs() -> Path:
    """The folder of the newest version's programs.

    Raises:
        NotInstalledError: no version is installed, or none completely.
    """
    found = [path.parent for path in _DEBIAN.glob("*/bin/initdb")]
    if not found:
        raise NotInstalledError(f"no PostgreSQL in {_DEBIAN}: apt-get install postgresql")
    if os.geteuid() == 0 and _USER not in {each.pw_name for each in pwd.getpwall()}:
        raise NotInstalledError(f"no user {_USER}: apt-get install postgresql")
    return max(found, key=lambda folder: int(folder.parent.name))


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """A server of the programs in ``folder`` on a free port; its address, as SQLAlchemy has it."""
    identity: dict[str, Any] = {}
    data = Path(tempfile.mkdtemp(prefix="merge-postgresql-"))
    if os.geteuid() == 0:
        identity = {"user": _USER, "group": _USER, "extra_groups": []}
        shutil.chown(data, _USER)
    port = free_port()
    try:
        subprocess.run(
            [folder / "initdb", "-D", data, "-U", _USER, "--auth=trust", "--no-sync"],
            check=True,
            capture_output=True,
            cwd=data,
            **identity,
        )
        settings = {"listen_addresses": "127.0.0.1", "fsync": "off", "max_connections": 200}
        options = [part for item in settings.items() for part in ("-c", "{}={}".format(*item))]
        with (data / "server.log").open("wb") as log:
            server = subprocess.Popen(
                [folder / "postgres", "-D", data, "-p", str(port), "-k", data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=data,
                **identity,
            )
        try:
            wait_for("a healthy PostgreSQL", lambda: _answers(folder, port, server))
            yield f"postgresql+psycopg2://{_USER}@127.0.0.1:{port}/postgres"
        finally:
            # SIGINT: without waiting for clients.
            server.send_signal(signal.SIGINT)
            try:
                server.wait(timeout=120)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
    finally:
        shutil.rmtree(data, ignore_errors=True)


def _answers(folder: Path, port: int, server: subprocess.Popen[bytes]) -> bool:
    assert server.poll() is None, "PostgreSQL has ended"
    command = [folder / "pg_isready", "-h", "127.0.0.1", "-p", str(port)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
