"""``python -m tests.writers [--writers duckdb,polars] [--every 1] [--turn 0]``: the whole matrix.

Each writer writes the same rows with each of its options; the files are put into a Paimon and an
Iceberg table, which statements change. A line tells each table and statement, the last one the
counts; the exit code is 1 if something differed.
"""

# ruff: noqa: T201 - a command speaks on the terminal

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.spark_session import local_session
from tests.writers.matrix import (
    ELSEWHERE,
    KINDS,
    Files,
    files_from_elsewhere,
    files_of,
    run_all,
    writers_here,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.writers", description="Other writers.")
    parser.add_argument("--writers", default="", help="names, separated by commas; all by default")
    parser.add_argument("--every", type=int, default=1, help="take one of so many options")
    parser.add_argument("--turn", type=int, default=0, help="which of them")
    parsed = parser.parse_args()
    names = [each for each in parsed.writers.split(",") if each]
    checked = failed = written = 0
    with tempfile.TemporaryDirectory(prefix="writers-") as name:
        folder = Path(name)
        with local_session(folder / "spark", interpreted=True) as spark:
            for files in _files(spark, folder, names, parsed.every, parsed.turn):
                written += len(files.files)
                for number, reason in files.not_written.items():
                    print(f"{files.writer} does not write option {number}: {reason}", flush=True)
                for kind in KINDS:
                    try:
                        for line in run_all(spark, files, folder, [kind]):
                            checked += 1
                            print(line, flush=True)
                    except Exception as error:  # noqa: BLE001 - whatever a reader raises is told
                        failed += 1
                        print(f"FAILED {error}", flush=True)
    print(f"{written} files, {checked} statements checked, {failed} tables failed")
    return int(failed > 0)


def _files(
    spark: SparkSession, folder: Path, names: list[str], every: int, turn: int
) -> Iterator[Files]:
    for writer in writers_here(spark):
        if not names or writer.name in names:
            yield files_of(writer, folder / writer.name, every, turn)
    for other in ELSEWHERE:
        if names and other not in names:
            continue
        try:
            yield files_from_elsewhere(other, folder / other)
        except FileNotFoundError as error:
            print(f"{other} skipped: {error}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
