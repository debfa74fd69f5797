"""Process trees, looked at with ps: the Spark environment has no psutil."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Found = TypeVar("Found")


def wait_for(what: str, look: Callable[[], Found], seconds: float = 900) -> Found:
    """The first true thing that ``look`` returns."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} seconds"
        time.sleep(0.02)
    return found


def descendants(pid: int) -> list[int]:
    """The processes below ``pid``, parents first; zombies are none."""
    lines = _ps("-eo", "pid=,ppid=,stat=").splitlines()
    children: dict[int, list[int]] = {}
    for child, parent, state in (line.split()[:3] for line in lines):
        if not state.startswith("Z"):
            children.setdefault(int(parent), []).append(int(child))
    found = [pid]
    for each in found:
        found.extend(children.get(each, ()))
    return found[1:]


def ancestor(pid: int, text: str) -> int:
    """The nearest process above ``pid`` whose command line holds ``text``."""
    while pid > 1:
        if text in _ps("-ww", "-o", "args=", "-p", str(pid)):
            return pid
        pid = int(_ps("-o", "ppid=", "-p", str(pid)) or 0)
    raise AssertionError(f"no process above runs {text}")


def running(*texts: str) -> list[int]:
    """The processes whose command lines hold all of ``texts``."""
    lines = [line.split(None, 1) for line in _ps("-eo", "pid=,args=", "-ww").splitlines()]
    return [int(pid) for pid, command in lines if all(text in command for text in texts)]


def is_java(pid: int) -> bool:
    return _ps("-o", "comm=", "-p", str(pid)).strip() == "java"


def kill(pid: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Nothing happens when it has ended already."""
    with suppress(ProcessLookupError):
        os.kill(pid, by)


def stop(pid: int) -> None:
    """SIGSTOP: it stays as it is until it is killed."""
    os.kill(pid, signal.SIGSTOP)


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for a process and all below it; none is left afterwards."""
    pids = [process.pid, *descendants(process.pid)]
    for pid in pids:  # parents first: none can start another child
        kill(pid)
    process.wait()
    wait_for("the end of the processes", lambda: not any(_alive(pid) for pid in pids))


def _alive(pid: int) -> bool:
    state = _ps("-o", "stat=", "-p", str(pid)).strip()
    return bool(state) and not state.startswith("Z")


def _ps(*arguments: str) -> str:
    return subprocess.run(["ps", *arguments], capture_output=True, text=True, check=False).stdout
