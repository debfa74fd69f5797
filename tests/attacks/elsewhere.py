"""Jobs on another machine: in a process of its own, whose clock or user may be wrong.

``python -m tests.attacks.elsewhere`` reads requests and secrets from its standard input and runs
them one after the other, without a Spark session.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, Statement, TableName
from spark_jobs.contract.result import JobResult
from tests.support.faketime import clock
from tests.support.paimon_tables import NAME

_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Elsewhere:
    """Where jobs run: ``days`` is how far their clock is ahead."""

    catalog: CatalogSpec
    credentials: Mapping[str, str]
    days: float = 0

    def run(
        self, *statements: Statement, name: TableName = NAME, retry: bool = False
    ) -> tuple[list[JobResult], str]:
        """The results of the statements, and what the jobs logged."""
        origin = Origin(try_number=2, retries=2) if retry else Origin()
        requests = [
            JobRequest(str(uuid.uuid4()), name, self.catalog, statement, origin=origin)
            for statement in statements
        ]
        return self.requested(requests)

    def requested(self, requests: Sequence[JobRequest]) -> tuple[list[JobResult], str]:
        """The same for whole requests."""
        plan = {"requests": [r.to_json() for r in requests], "credentials": dict(self.credentials)}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.attacks.elsewhere"],
            input=json.dumps(plan),
            capture_output=True,
            text=True,
            cwd=_ROOT,
            env={**os.environ, **clock(self.days)},
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [JobResult.from_json(text) for text in json.loads(done.stdout)], done.stderr


def _main() -> None:
    from spark_jobs.run import run

    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    plan = json.load(sys.stdin)
    requests = [JobRequest.from_json(text) for text in plan["requests"]]
    results = [run(each, None, plan["credentials"]) for each in requests]
    json.dump([result.to_json() for result in results], sys.stdout)


if __name__ == "__main__":
    _main()
