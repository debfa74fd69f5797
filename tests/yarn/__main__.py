"""Ends tasks at each point of their jobs, repeatedly: ``python -m tests.yarn --endings 20``."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from tests.airflow import conftest as _airflow_home  # noqa: F401 - before anything imports airflow
from tests.judge.yarn_server import yarn_server
from tests.judge.yarn_toolchain import yarn_toolchain
from tests.yarn.cluster import Cluster
from tests.yarn.endings import ENDINGS, ended


def main() -> int:
    """Print a line for each ending, and one in the end; 0 if nothing was published."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endings", type=int, default=20, help="of each kind")
    parser.add_argument("--kinds", default="", help="only those whose name has this expression")
    parser.add_argument("--reach", choices=("yes", "no", "both"), default="both")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none after that")
    chosen = parser.parse_args()
    kinds = [
        (name, reachable)
        for name in ENDINGS
        for reachable in {"yes": [True], "no": [False], "both": [True, False]}[chosen.reach]
        if re.search(chosen.kinds, name)
    ]
    until = time.monotonic() + chosen.minutes * 60
    failures = total = 0
    with tempfile.TemporaryDirectory() as folder, yarn_server(yarn_toolchain()) as yarn:
        cluster = Cluster(yarn, Path(folder))
        cluster.warehouse.mkdir()
        os.environ.update(cluster.variables())
        for number in range(chosen.endings):
            for name, reachable in kinds:
                if time.monotonic() > until:
                    break
                failures += not _is_fine(cluster, number, name, reachable)
                total += 1
    sys.stdout.write(f"{total} endings, {failures} failures\n")
    return 1 if failures else 0


def _is_fine(cluster: Cluster, number: int, name: str, reachable: bool) -> bool:
    began = time.monotonic()
    found = ended(cluster, name, reachable=reachable)
    fine = found.after == found.before and found.error is not None
    reach = "asked" if reachable else "not asked"
    state, seconds = found.application["finalStatus"], time.monotonic() - began
    verdict = "nothing" if fine else f"PUBLISHED {found}"
    line = f"{number + 1:3} {name:<32}{reach:<11}{state:<9}{seconds:6.1f} s  {verdict}\n"
    sys.stdout.write(line)
    sys.stdout.flush()
    return fine


if __name__ == "__main__":
    sys.exit(main())
