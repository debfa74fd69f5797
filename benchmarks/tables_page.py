"""The page of a table with a long history: when it is there, how long later pages take, memory.

Usage: python -m benchmarks.tables_page [--snapshots N] [--tables N]
Runs in the Airflow environment, with Airflow's own API server and Chromium, on a table whose
metadata lies in a temporary folder. The same table under other names fills the server's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil

_SHOWN = "return document.querySelector('#part td') ? performance.now() : 0"
_PAINTED = "return document.querySelector('.plot .barlayer path') ? performance.now() : 0"
_FIRST_PAINT = (
    "return performance.getEntriesByName('first-contentful-paint').map((each) => each.startTime)"
)


def main() -> None:
    """Print milliseconds and megabytes."""
    from tests.support.paimon_history import LongHistory
    from tests.support.ports import free_ports

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--snapshots", type=int, default=10_000)
    parser.add_argument("--tables", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, (port,) = Path(name), free_ports(1)
        began = time.monotonic()
        table = LongHistory(folder / "warehouse", "big").create()
        table.grow(options.snapshots)
        for number in range(options.tables):
            (table.folder.parent / f"same_{number}").symlink_to(table.folder)
        print(f"{options.snapshots:,} snapshots and {2 * options.snapshots:,} files written "
              f"in {time.monotonic() - began:.0f} s")  # fmt: skip
        with running(folder, port) as server:
            url = f"http://127.0.0.1:{port}/lakehouse"
            print(f"memory of the server at first: {memory(server):,} MB")
            in_the_browser(folder, url)
            print(f"memory after one table: {memory(server):,} MB")
            requests(url, "big")
            for number in range(options.tables):
                requests(url, f"same_{number}", quiet=True)
            print(f"memory after {options.tables + 1} such tables: {memory(server):,} MB")


def in_the_browser(folder: Path, url: str) -> None:
    """Time from the start of the navigation, as the browser counts it."""
    from tests.live.browser import browsing

    query = {"connection": "paimon_default", "database": "shop", "table": "big"}
    with browsing(folder / "browser") as browser:
        browser.open(f"{url}/static/style.css")
        for round_ in ("first", "second"):
            browser.open(f"{url}/table?{urlencode(query)}")
            shown, painted = (until(browser, script) for script in (_SHOWN, _PAINTED))
            (paint,) = browser.run(_FIRST_PAINT)
            print(f"{round_} visit: first paint {paint:.0f} ms, list of snapshots {shown:.0f} ms, "
                  f"picture {painted:.0f} ms")  # fmt: skip


def until(browser: Any, script: str) -> float:
    """The first time at which a script returns one."""
    while not (found := browser.run(script)):
        time.sleep(0.02)
    return float(found)


def requests(url: str, table: str, *, quiet: bool = False) -> None:
    """Turn pages of snapshots and partitions."""
    names = {"connection": "paimon_default", "database": "shop", "table": table}
    at: dict[str, Any] = {}
    for path, more in (
        ("partitions", {}),
        *(("partitions", {"offset": each, "sort": "rows"}) for each in (100, 200, 300)),
        ("days", {}),
        *(("snapshots", None) for _ in range(10)),
        *(("sizes", None) for _ in range(3)),
        ("care", {}),
        ("compare", {"before": 100, "after": 200}),
        *(("tables", each) for each in ({}, {"older_than": 60}, {"writer": "nobody"})),
    ):
        query = {**names, **(at if more is None else more)}
        began = time.monotonic()
        with urllib.request.urlopen(f"{url}/v1/{path}?{urlencode(query)}") as answer:
            told = json.loads(answer.read())
        if not quiet:
            print(f"{path} {more or at}: {(time.monotonic() - began) * 1000:.0f} ms")
        at = {"at": told["next"]} if path == "snapshots" and told["next"] else at


@contextmanager
def running(folder: Path, port: int) -> Iterator[psutil.Process]:
    """Airflow's API server; afterwards none of it is left."""
    paimon = {"conn_type": "paimon", "extra": {"warehouse": str(folder / "warehouse")}}
    url = f"http://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(folder / "home"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW_CONN_PAIMON_DEFAULT": json.dumps(paimon),
    }
    airflow = [sys.executable, "-m", "airflow"]
    subprocess.run([*airflow, "db", "migrate"], env=environment, check=True, capture_output=True)
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(
            [*airflow, "api-server"],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):
        try:
            while True:
                try:
                    urllib.request.urlopen(f"{url}/lakehouse/v1/connections").read()
                    break
                except OSError:
                    time.sleep(0.5)
            yield psutil.Process(process.pid)
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def memory(server: psutil.Process) -> int:
    """Resident megabytes of the server and its children."""
    processes = [server, *server.children(recursive=True)]
    return sum(each.memory_info().rss for each in processes) // 1_000_000


if __name__ == "__main__":
    main()
