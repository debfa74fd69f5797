"""Runs acceptance cases: ``python -m tests.acceptance --cases FILE``, in ``.venv-spark``.

Each failure is a line with the case's id and what differed, and so is each case of which no more
than success or failure can be checked; the last line has the counts. A case that is not understood,
or whose tables cannot be made, is a failure, too. The exit code is 0 when no run failed that is
not refused for a listed reason, 1 when one failed, and 2 when there was nothing to run: no file, an
unknown case or kind of table. Kinds with a primary key run only the cases with one, and with the
options that they give.
"""

# ruff: noqa: T201 - a command speaks on the terminal

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.attempts import attempts, read_by_hand
from tests.acceptance.cases import BadCaseError, Case, load_cases
from tests.acceptance.iceberg_tables import IcebergWarehouse
from tests.acceptance.report import Entry, last_line, read_refused, write_report
from tests.acceptance.running import Attempt, Bench
from tests.acceptance.tables import Warehouse
from tests.support.forced_plans import FORCED, forced_plan
from tests.support.spark_session import local_session
from tests.support.table_kinds import (
    ICEBERG,
    ICEBERG_BUCKETS,
    ICEBERG_DELETES,
    KINDS,
    TableKind,
    named_kinds,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES_VARIABLE = "MERGE_ACCEPTANCE_CASES"
_ICEBERG = (*ICEBERG, *ICEBERG_BUCKETS, *ICEBERG_DELETES)
_KINDS = {**KINDS, **{kind.name: kind for kind in _ICEBERG}}


def main(arguments: list[str] | None = None, spark: SparkSession | None = None) -> int:
    """The command, with a session of its own unless there is one; returns the exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        kinds = _kinds(parsed.tables)
        runs = list(_runs(parsed.cases, parsed.only))
    except (BadCaseError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    started = time.monotonic()
    entries = []
    with forced_plan(parsed.plan) as tally:
        for entry in _entries(kinds, runs, spark):
            entries.append(entry)
            if entry.outcome in ("failed", "unchecked"):
                print(entry.line(), flush=True)
    seconds = time.monotonic() - started
    if parsed.report:
        write_report(Path(parsed.report), entries, seconds)
    if parsed.plan != "auto":
        print(tally)
    print(last_line(entries, seconds))
    return int(any(entry.outcome == "failed" for entry in entries))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.acceptance", description="Run acceptance cases."
    )
    default = os.environ.get(CASES_VARIABLE)
    parser.add_argument(
        "--cases",
        default=default,
        required=default is None,
        help=f"file with one case per line; default: ${CASES_VARIABLE}",
    )
    parser.add_argument("--tables", default="append-cow", help=f"of: {', '.join(_KINDS)}")
    parser.add_argument(
        "--plan", choices=FORCED, default="auto", help="the plan of merges, where it can run them"
    )
    parser.add_argument("--only", action="append", default=[], help="id of a case; repeatable")
    parser.add_argument("--report", help="file for the results as JSON")
    return parser


def _kinds(text: str) -> tuple[TableKind, ...]:
    try:
        return named_kinds([each.strip() for each in text.split(",")], tuple(_KINDS.values()))
    except ValueError as error:
        raise BadCaseError(f"--tables: {error}") from None


def _runs(path: str, only: list[str]) -> Iterator[Attempt]:
    cases = {case.id: case for case in load_cases(Path(path))}
    if unknown := sorted(set(only) - set(cases)):
        raise BadCaseError(f"--only: no such case: {', '.join(unknown)}")
    chosen: list[Case] = [cases[each] for each in only] or list(cases.values())
    if not chosen:
        raise BadCaseError(f"{path}: holds no case")
    by_hand = read_by_hand()
    for case in chosen:
        yield from attempts(case, by_hand)


def _entries(
    kinds: Sequence[TableKind], runs: list[Attempt], given: SparkSession | None
) -> Iterator[Entry]:
    with (
        tempfile.TemporaryDirectory(prefix="acceptance-") as folder,
        nullcontext(given)
        if given
        else local_session(Path(folder) / "spark-warehouse", shuffle_partitions=1) as spark,
    ):
        for kind in kinds:
            warehouse = Path(folder) / kind.name / "warehouse"
            warehouse.mkdir(parents=True)
            opened = IcebergWarehouse if kind in _ICEBERG else Warehouse
            bench = Bench(spark, opened(warehouse, kind))
            refused = read_refused(kind.name)
            for attempt in runs:
                if kind.has_key and not _has_key(attempt.case):
                    continue
                yield Entry.of(kind.name, bench.run(attempt), refused)


def _has_key(case: Case) -> bool:
    return any(table.primary_key for table in case.create)


if __name__ == "__main__":
    sys.exit(main())
