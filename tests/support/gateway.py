"""The real S3 server: versitygw, built once into ``.tools/s3`` with Go, and served from a folder.

``make test`` has it built before the suites start; a test that finds none builds it. Go decides
from where it downloads, and checks the module against its public checksums. Without Go, or when the
module cannot be fetched, there is a reason to skip, which the suites' summary shows.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ports import free_port

VERSION = "v1.8.0"
MODULE = f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"
TOOLS = Path(__file__).resolve().parents[2] / ".tools" / "s3"
_BUILD_ATTEMPTS = 3
_BUILD_SECONDS = 900
_PAUSE_SECONDS = 5
_START_SECONDS = 300


class GatewayMissingError(Exception):
    """The server cannot be made on this machine; the text says what is missing."""


def gateway_program() -> Path:
    """The server's binary, built if it is not there yet (about a minute on two cores).

    Raises:
        GatewayMissingError: with what is missing.
    """
    program = TOOLS / f"versitygw-{VERSION}"
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        raise GatewayMissingError(f"there is no go to build {MODULE}: install Go 1.24 or newer")
    TOOLS.mkdir(parents=True, exist_ok=True)
    # Suites that run at the same time wait for the one that builds it.
    with (TOOLS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if program.exists():
            return program
        with tempfile.TemporaryDirectory(dir=TOOLS) as folder:
            _build(go, folder)
            Path(folder, "versitygw").replace(program)
    return program


def _build(go: str, folder: str) -> None:
    """Put the binary into ``folder``; try again when it fails: proxies have bad moments."""
    # Building it is what costs time, not what it does.
    fast = ("-gcflags=all=-N -l", "-ldflags=-s -w")
    command = [go, "install", "-trimpath", *fast, MODULE]
    environment = {**os.environ, "GOBIN": folder, "CGO_ENABLED": "0"}
    for _ in range(_BUILD_ATTEMPTS):
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_BUILD_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise GatewayMissingError(f"{MODULE} was not built in {_BUILD_SECONDS} s") from error
        if done.returncode == 0:
            return
        time.sleep(_PAUSE_SECONDS)
    last = done.stderr.strip().splitlines()[-1:] or ["no message"]
    raise GatewayMissingError(f"go could not build {MODULE}: {last[0][:300]}")


def gateway_program_or_skip() -> Path:
    """The server's binary for a test, which is skipped where it cannot be made."""
    try:
        return gateway_program()
    except GatewayMissingError as error:
        pytest.skip(f"no S3 server: {error}")


@contextmanager
def serving(
    program: Path, folder: Path, access_key: str, secret_key: str, port: int | None = None
) -> Iterator[str]:
    """A server over ``folder/data``, whose folders, and links to some, are its buckets.

    ``port``: by default one that is free.

    Yields:
        The endpoint.
    """
    data, metadata, users = folder / "data", folder / "metadata", folder / "users"
    for each in (data, metadata, users):
        each.mkdir(exist_ok=True)
    port = port or free_port()
    command = [program, "--quiet", "--port", f"127.0.0.1:{port}", "--region", "us-east-1"]
    keys = {"ROOT_ACCESS_KEY": access_key, "ROOT_SECRET_KEY": secret_key}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            # Not every file system of temporary folders has the attributes it would use.
            [*command, "--iam-dir", users, "posix", "--bucketlinks", "--sidecar", metadata, data],
            env={**os.environ, **keys},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(server, port, folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _wait_for(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"the S3 server did not start:\n{log.read_text(errors='replace')[-2000:]}")
