"""Programs in Java that answer requests, kept running for the whole test session."""

from __future__ import annotations

import atexit
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from tests.judge.toolchain import Toolchain, prepare

# Small requests: compiling them well costs more than it gains.
_SMALL = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class JudgeError(Exception):
    """The Java reader failed; the text is Java's."""


class Server:
    """The JVM; ends with this process, whose end closes its standard input."""

    def __init__(
        self,
        toolchain: Toolchain,
        program: str,
        zone: str = "UTC",
        options: Sequence[str] = _SMALL,
    ) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the JVM
        options = [*options, f"-Duser.timezone={zone}"]
        self._process = subprocess.Popen(
            [toolchain.java, *options, "-cp", toolchain.classpath, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            encoding="utf-8",
        )

    def ask(self, **request: Any) -> Iterator[dict[str, Any]]:
        """The answers to one request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answers = []
        for line in self._process.stdout:
            answer = json.loads(line)
            if "error" in answer:
                raise JudgeError(answer["error"])
            if "end" in answer:
                return iter(answers)
            answers.append(answer)
        self._log.seek(0)
        raise JudgeError(f"the JVM ended: {self._log.read()[-2000:]}")

    def close(self) -> None:
        """End the JVM."""
        self._process.communicate()
        self._log.close()


@cache
def server(program: str, zone: str = "UTC") -> Server:
    """The running program of this name in a time zone, started on the first call.

    Raises:
        JudgeMissingError: there is no JDK, or Paimon's library cannot be fetched.
    """
    started = Server(prepare(), program, zone)
    atexit.register(started.close)
    return started
