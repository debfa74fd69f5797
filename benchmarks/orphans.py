"""The search for orphan files of a large table: by the driver alone, and through Spark.

``.venv-spark/bin/python -m benchmarks.orphans``: 20,000 data files in 1,000 partitions, and 1,000
files that nobody knows. Each way is a dry run in a process of its own. Prints seconds, and the peak
memory of the process and, through Spark, of its JVM, which is driver and executors here.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import planning
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import RemoveOrphanFilesSpec
from spark_jobs.contract.request import CatalogSpec
from tests.support.spark_session import local_session

# Every file is older than that.
_ALL = RemoveOrphanFilesSpec("1 ms")


def build(warehouse: Path, days: int, files_per_day: int, orphans: int) -> None:
    """The table, and its orphans in the first days' folders."""
    warehouse.mkdir()
    planning.fill_table(planning.create_table(warehouse), days, files_per_day)
    folders = sorted(warehouse.rglob("bucket-0"))
    for number in range(orphans):
        (folders[number % len(folders)] / f"data-lost-{number}.parquet").touch()


def _search(warehouse: Path, through_spark: bool, results: Any) -> None:
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    assert connector.maintenance is not None
    remove = partial(connector.maintenance.remove_orphan_files, planning.NAME, _ALL, dry_run=True)
    if not through_spark:
        started = time.monotonic()
        found = remove().data_files
        seconds = time.monotonic() - started
        results.put({"orphans": found, "seconds": round(seconds, 1), **_peak("self")})
        return
    with tempfile.TemporaryDirectory() as folder, local_session(Path(folder)) as spark:
        spark.range(1).repartition(2).mapInArrow(lambda batches: batches, "id long").collect()
        started = time.monotonic()
        found = remove(spark=spark).data_files
        seconds = time.monotonic() - started
        jvm = _peak(spark.sparkContext._gateway.proc.pid)  # noqa: SLF001
        results.put({"orphans": found, "seconds": round(seconds, 1), **_peak("self"), "JVM": jvm})


def _peak(process: str | int) -> dict[str, int]:
    """The most memory that a process had at a time."""
    status = Path(f"/proc/{process}/status").read_text()
    return {"MB": int(status.split("VmHWM:")[1].split()[0]) // 1024}


def measured(warehouse: Path, way: str) -> dict[str, Any]:
    """Search in a process of its own."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=_search, args=(warehouse, way == "spark", results))
    process.start()
    answer: dict[str, Any] = results.get(timeout=900)
    process.join()
    return answer


def main() -> None:
    """Print what was measured, as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=1000)
    parser.add_argument("--files-per-day", type=int, default=20)
    parser.add_argument("--orphans", type=int, default=1000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        warehouse = Path(name) / "warehouse"
        build(warehouse, chosen.days, chosen.files_per_day, chosen.orphans)
        for way in ("driver", "spark"):
            sys.stdout.write(f"{way}: {json.dumps(measured(warehouse, way))}\n")


if __name__ == "__main__":
    main()
