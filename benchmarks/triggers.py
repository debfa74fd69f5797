"""500 triggers on 50 tables in one event loop: how late the loop is, and how many polls there are.

Usage: python -m benchmarks.triggers [--triggers N] [--tables N] [--seconds S]
Runs in the Airflow environment, on tables whose metadata lies in a temporary folder.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

INTERVAL = 5.0


def main() -> None:
    """Print polls per table and interval, and the loop's lag."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triggers", type=int, default=500)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["AIRFLOW_HOME"] = f"{folder}/home"
        warehouse = Path(folder) / "warehouse"
        extra = {"conn_type": "paimon", "extra": {"warehouse": str(warehouse)}}
        os.environ["AIRFLOW_CONN_PAIMON_DEFAULT"] = json.dumps(extra)
        asyncio.run(measure(options, warehouse))


async def measure(options: argparse.Namespace, warehouse: Path) -> None:
    """Half wait for a snapshot, half for a partition; each second a table commits."""
    from airflow_provider_merge.triggers import polling
    from airflow_provider_merge.triggers.gates import PartitionGate, SnapshotGate, gate_arguments
    from airflow_provider_merge.triggers.table import TableTrigger
    from tests.support.paimon_metadata import TableFiles

    tables = [TableFiles(warehouse, f"t{index}").create() for index in range(options.tables)]
    for table in tables:
        for _ in range(20):
            table.add({f"2026-01-{day:02}": 1 for day in range(1, 29)})
    gates = (
        SnapshotGate(after_id=10**9),
        PartitionGate(({"day": "2027-01-01"},)),
    )
    polls: Counter[str] = Counter()
    view = polling.TableView

    class Counted(view):  # type: ignore[misc, valid-type]
        def __init__(self, table: object, cache: object) -> None:
            polls[table.location] += 1  # type: ignore[attr-defined]
            super().__init__(table, cache)

    polling.TableView = Counted  # type: ignore[misc]
    deadline = time.time() + options.seconds

    async def run(index: int) -> None:
        table, gate = tables[index % len(tables)], gates[index % 2]
        trigger = TableTrigger(
            f"shop.{table.name}", "paimon_default", INTERVAL, gate_arguments(gate), deadline
        )
        async for _ in trigger.run():
            pass

    waiting = [asyncio.create_task(run(index)) for index in range(options.triggers)]
    lags = await lags_of_loop(deadline, tables)
    await asyncio.gather(*waiting)
    lags.sort()
    most = max(polls.values())
    print(f"{options.triggers} triggers on {options.tables} tables, {options.seconds:g} seconds")
    print(f"polls per table: at most {most}, in {options.seconds / INTERVAL:g} intervals")
    for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        print(f"loop lag {name}: {lags[int((len(lags) - 1) * share)] * 1000:.1f} ms")


async def lags_of_loop(deadline: float, tables: list) -> list[float]:  # type: ignore[type-arg]
    """By how much a sleep of 10 ms is too long, until the deadline."""
    lags, commits = [], 0
    while time.time() < deadline:
        started = time.perf_counter()
        await asyncio.sleep(0.01)
        lags.append(time.perf_counter() - started - 0.01)
        if len(lags) % 100 == 0:
            commits += 1
            await asyncio.to_thread(tables[commits % len(tables)].add)
    return lags


if __name__ == "__main__":
    main()
