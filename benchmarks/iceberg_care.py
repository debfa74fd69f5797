"""Care of Iceberg tables, by this project and by the procedures of Spark with Iceberg.

``.venv-spark/bin/python -m benchmarks.iceberg_care [expiry] [files] [few] [marks] [--share F]``:

- expiry: 10,000 snapshots, each of which replaced the two files of the one before; all but the last
  expire.
- files: 10,000 files of 1,000 rows in 50 partitions become one each.
- few: the same of files of 100 rows.
- marks: 10 million rows in 16 files; every fifth is marked by position deletes, and all files are
  rewritten.

Each side works on a copy of one table at one place, in a process of its own, after it has done the
same to a small table. Prints the seconds, their ratio, the peak memory of all processes of a side,
and the seconds of a scan by Spark with Iceberg before and behind. ``--share`` makes all smaller.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.comparison import ROOT, session, timed
from benchmarks.iceberg_care_tables import (
    CATALOG,
    DATABASE,
    HEAP,
    Place,
    build_files,
    build_marks,
    build_snapshots,
)
from benchmarks.natives.engines import digest, linked_copy
from benchmarks.natives.usage import Peak
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import Statement

_SMALL: Final = "small"
_LARGE: Final = "large"


@dataclass(frozen=True)
class Case:
    """What is done to a table that ``build`` makes: (place, table's name, share of its size)."""

    build: Callable[[Place, str, float], None]
    statement: Statement
    procedure: str
    is_scanned: bool = True


_REWRITE: Final = "rewrite_data_files(table => '{table}', options => map({options}))"
CASES: Final[Mapping[str, Case]] = {
    "expiry": Case(
        build_snapshots,
        ExpireSnapshotsSpec(retain_min=1, older_than="0 s", max_deletes=1_000_000),
        "expire_snapshots(table => '{table}', older_than => TIMESTAMP '2100-01-01', "
        "retain_last => 1)",
        is_scanned=False,
    ),
    "files": Case(
        build_files,
        CompactSpec(min_files=2),
        _REWRITE.format(table="{table}", options="'min-input-files', '2'"),
    ),
    "few": Case(
        functools.partial(build_files, rows=100),
        CompactSpec(min_files=2),
        _REWRITE.format(table="{table}", options="'min-input-files', '2'"),
    ),
    "marks": Case(
        build_marks,
        CompactSpec(deleted_share=0.1),
        _REWRITE.format(table="{table}", options="'delete-ratio-threshold', '0.1'"),
    ),
}


def ours(place: Place, case: str, report: Any) -> None:
    """Care by this project: of the small table, then of the large one."""
    spark = session(HEAP)
    statement = CASES[case].statement
    timed(spark, place.catalog, TableName(DATABASE, _SMALL), statement)
    seconds, result = timed(spark, place.catalog, TableName(DATABASE, _LARGE), statement)
    report.put((seconds, str(dict(result.metrics.seconds))))


def theirs(place: Place, case: str, report: Any) -> None:
    """The same by Iceberg's procedure."""
    spark = place.java()
    found: list[Any] = []
    for name in (_SMALL, _LARGE):
        call = CASES[case].procedure.format(table=f"{DATABASE}.{name}")
        started = time.perf_counter()
        found = spark.sql(f"CALL {CATALOG}.system.{call}").collect()
        seconds = time.perf_counter() - started
    report.put((seconds, str(found[0].asDict())))


def scan(place: Place, case: str, report: Any) -> None:
    """Read the large table thrice with Spark and Iceberg; the least seconds, and its rows."""
    del case
    spark = place.java()
    rows = spark.table(f"{CATALOG}.{DATABASE}.{_LARGE}")
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        rows.write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - started)
    report.put((min(seconds), digest(rows)))


def _build(place: Place, case: str, share: float, report: Any) -> None:
    with closing(place.library()) as catalog:
        catalog.create_namespace(DATABASE)
    CASES[case].build(place, _SMALL, 0.01)
    CASES[case].build(place, _LARGE, share)
    report.put((0.0, ""))


def _apart(side: Callable[..., None], *arguments: Any) -> tuple[float, Any, int]:
    """Run a side in a process of its own: its seconds, what it tells, and its memory in bytes."""
    context = multiprocessing.get_context("spawn")
    report = context.Queue()
    process = context.Process(target=side, args=(*arguments, report))
    process.start()
    assert process.pid is not None
    with Peak(process.pid) as peak:
        seconds, told = report.get(timeout=3600)
    process.join()
    return seconds, told, peak.together


def measure(case: str, share: float) -> None:
    """Print what a case costs both sides."""
    live = Place(ROOT / f"care-{uuid.uuid4().hex}")
    kept = live.folder.with_suffix(".kept")
    (live.folder / "warehouse").mkdir(parents=True)
    scans: dict[str, tuple[float, Any]] = {}
    found: dict[str, tuple[float, Any, int]] = {}
    try:
        _apart(_build, live, case, share)
        linked_copy(live.folder, kept, lambda path: not path.endswith(".db"))
        if CASES[case].is_scanned:
            scans["before"] = _apart(scan, live, case)[:2]
        for name, side in (("here", ours), ("iceberg", theirs)):
            shutil.rmtree(live.folder)
            linked_copy(kept, live.folder, lambda path: not path.endswith(".db"))
            found[name] = _apart(side, live, case)
            if CASES[case].is_scanned:
                scans[name] = _apart(scan, live, case)[:2]
    finally:
        for folder in (live.folder, kept):
            shutil.rmtree(folder, ignore_errors=True)
    for name, (seconds, told, memory) in found.items():
        print(f"{case} {name}: {seconds:.1f} s, {memory / 2**20:.0f} MiB; {told}")
    print(f"{case}: {found['iceberg'][0] / found['here'][0]:.1f} x")
    for name, (seconds, rows) in scans.items():
        print(f"{case}, scan {name}: {seconds:.2f} s of {rows[0]:,} rows")
    if len({rows for _, rows in scans.values()}) > 1:
        raise SystemExit(f"the rows differ: {scans}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    parser.add_argument("--share", type=float, default=1.0)
    parsed = parser.parse_args()
    for case in parsed.cases or CASES:
        measure(case, parsed.share)


if __name__ == "__main__":
    main()
