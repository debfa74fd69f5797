"""The server's triggerer, stopped and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import psutil

from tests.live.server import Server
from tests.support.waiting import wait_for


@dataclass
class Triggerer:
    """``airflow triggerer``: first the one that standalone started, then one of its own session."""

    server: Server
    _own: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        """Ask it to stop, as a deployment does, and wait until it has."""
        main = self._process()
        main.terminate()
        wait_for("the end of the triggerer", lambda: not _runs(main))
        if self._own is not None:
            self._own.wait(timeout=120)
            self._own = None

    def start(self) -> None:
        """Start another one."""
        with (self.server.folder / "triggerer.log").open("wb") as log:
            self._own = subprocess.Popen(
                [sys.executable, "-m", "airflow", "triggerer"],
                env=self.server.variables,
                cwd=self.server.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def close(self) -> None:
        """End it with all its processes, if it is not standalone's."""
        if self._own is not None and self._own.poll() is None:
            os.killpg(self._own.pid, signal.SIGKILL)
            self._own.wait(timeout=120)

    def _process(self) -> psutil.Process:
        if self._own is not None:
            return psutil.Process(self._own.pid)
        assert self.server._process is not None
        children = psutil.Process(self.server._process.pid).children()
        (found,) = [each for each in children if "triggerer" in each.cmdline()]
        return found


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
