"""Jobs on other machines, whose clocks are wrong: processes that run requests without a session.

``python -m tests.attacks.elsewhere`` reads a plan per line, with requests and secrets, and answers
with a line: their results, and what was logged.
"""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, Statement
from spark_jobs.contract.result import JobResult
from tests.support.faketime import clock, mend_sleep, wrong_clocks
from tests.support.paimon_tables import NAME

__all__ = ["elsewhere", "wrong_clocks"]

_ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Elsewhere:
    """Machines by the days that their clocks are ahead; each is started when it is needed."""

    stack: ExitStack
    machines: dict[float, subprocess.Popen[str]] = field(default_factory=dict)

    def run(
        self,
        days: float,
        catalog: CatalogSpec,
        credentials: Mapping[str, str],
        *statements: Statement,
        retry: bool = False,
    ) -> tuple[list[JobResult], str]:
        """The results of statements on ``NAME``, and what their jobs logged."""
        origin = Origin(try_number=2, retries=2) if retry else Origin()
        requests = [
            JobRequest(str(uuid.uuid4()), NAME, catalog, statement, origin=origin).to_json()
            for statement in statements
        ]
        plan = {"requests": requests, "credentials": dict(credentials)}
        answer = self._asked(days, json.dumps(plan))
        return [JobResult.from_json(text) for text in answer["results"]], answer["log"]

    def _asked(self, days: float, line: str) -> Any:
        if days not in self.machines:
            self.machines[days] = self.stack.enter_context(_running(days))
        process = self.machines[days]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[Elsewhere]:
    """Other machines, for all tests of a run."""
    with ExitStack() as stack:
        yield Elsewhere(stack)


@contextmanager
def _running(days: float) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.attacks.elsewhere"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=_ROOT,
        env={**os.environ, **clock(days)},
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _main() -> None:
    from spark_jobs.run import run

    said = io.StringIO()
    logging.basicConfig(stream=said, level=logging.INFO, format="%(levelname)s %(message)s")
    for line in sys.stdin:
        plan = json.loads(line)
        requests = [JobRequest.from_json(text) for text in plan["requests"]]
        results = [run(each, None, plan["credentials"]).to_json() for each in requests]
        sys.stdout.write(json.dumps({"results": results, "log": said.getvalue()}) + "\n")
        sys.stdout.flush()
        said.seek(0)
        said.truncate()


if __name__ == "__main__":
    mend_sleep()
    _main()
