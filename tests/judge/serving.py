"""A server in a process of its own, for as long as somebody needs it."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.judge.toolchain import JudgeMissingError

_ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def serving(command: Sequence[str], first_line: str = "") -> Iterator[str]:
    """The URI that ``command`` serves, which prints it and ends with its standard input.

    ``first_line`` is what it reads before, where no argument may show it.

    Raises:
        JudgeMissingError: it did not start; with what it said.
    """
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            encoding="utf-8",
        )
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            if first_line:
                print(first_line, file=process.stdin, flush=True)
            uri = process.stdout.readline().strip()
            if not uri:
                log.seek(0)
                raise JudgeMissingError(f"the server did not start: {log.read()[-2000:]}")
            yield uri
        finally:
            process.communicate()
