"""Commands in a mount namespace of their own: small, full and read-only disks; and other users.

Needs root.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Files that belong to root, such as a Python of its own, stay readable for them.
_AS_USER = (
    *("setpriv", "--reuid", "{0}", "--regid", "{0}", "--clear-groups"),
    *("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"),
)
_UNSHARED = ("unshare", "--mount", "--propagation", "private", "--")


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Skips where this process may not mount anything."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount small disks")
    mount = [*_UNSHARED, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        pytest.skip(f"needs unshare of util-linux: {error}")
    if done.returncode != 0:
        pytest.skip(f"needs a mount namespace: {done.stderr.strip()}")


def mounted(path: Path, size: str) -> str:
    """A shell command that mounts a small disk."""
    return f"mount -t tmpfs -o size={size},mode=1777 tmpfs {shlex.quote(str(path))}"


def in_namespace(
    mounts: Sequence[str], program: Sequence[str], variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program behind shell commands that mount; its output is text."""
    script = "; ".join(["set -e", *mounts, f"exec {shlex.join(program)}"])
    return subprocess.run(
        [*_UNSHARED, "sh", "-c", script],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **(variables or {})},
        timeout=300,
        check=False,
    )


def run_as(user: int, program: Sequence[str], home: Path) -> subprocess.CompletedProcess[str]:
    """Run a program as another user, or as this one if it is the same; its output is text."""
    others = [] if user == os.geteuid() else [each.format(user) for each in _AS_USER]
    return subprocess.run(
        [*others, *program],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=300,
        check=False,
    )


def python(*arguments: str) -> list[str]:
    """This Python."""
    return [sys.executable, "-W", "ignore", *arguments]
