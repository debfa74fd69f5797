"""A MariaDB server of Debian's packages, in a folder of its own, while a test needs it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.ports import free_port
from tests.support.waiting import wait_for

_PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb")
# The server refuses to run as root; Debian's packages make this user.
_USER = "mysql"


class NotInstalledError(Exception):
    """There is no MariaDB server on this machine."""


@contextmanager
def running() -> Iterator[tuple[int, Path]]:
    """A server on a free port of 127.0.0.1, and the socket by which root may do anything.

    Raises:
        NotInstalledError: no server is installed.
    """
    for name in _PROGRAMS:
        if shutil.which(name) is None:
            raise NotInstalledError(f"there is no {name}: apt-get install mariadb-server")
    identity: dict[str, Any] = {}
    folder = Path(tempfile.mkdtemp(prefix="merge-mariadb-"))
    if os.geteuid() == 0:
        if _USER not in {each.pw_name for each in pwd.getpwall()}:
            raise NotInstalledError(f"no user {_USER}: apt-get install mariadb-server")
        identity = {"user": _USER, "group": _USER, "extra_groups": []}
        shutil.chown(folder, _USER)
    data, socket, port = folder / "data", folder / "socket", free_port()
    try:
        subprocess.run(
            [
                *("mariadb-install-db", "--no-defaults", f"--datadir={data}"),
                *("--auth-root-authentication-method=normal", "--skip-test-db"),
            ],
            check=True,
            capture_output=True,
            cwd=folder,
            **identity,
        )
        with (folder / "server.log").open("wb") as log:
            server = subprocess.Popen(
                [
                    *("mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={socket}"),
                    *(f"--port={port}", "--bind-address=127.0.0.1"),
                    "--innodb-buffer-pool-size=64M",
                    *("--innodb-flush-log-at-trx-commit=0", f"--pid-file={folder / 'pid'}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                **identity,
            )
        try:
            wait_for("a healthy MariaDB", lambda: _answers(socket, server))
            yield port, socket
        finally:
            server.terminate()
            try:
                server.wait(timeout=120)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def do(socket: Path, text: str) -> None:
    """Run statements as root."""
    command = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root"]
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def _answers(socket: Path, server: subprocess.Popen[bytes]) -> bool:
    assert server.poll() is None, "MariaDB has ended"
    command = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root", "-e", "SELECT 1"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
