"""The matrix: writers, options, kinds of tables and statements."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import pyarrow.parquet as pq

from spark_jobs.contract.request import TableName
from tests.writers.checks import check
from tests.writers.columns import as_table, rows
from tests.writers.foreign_tables import ForeignTable
from tests.writers.history import ROWS_PER_FILE, STATEMENTS, History, written_here
from tests.writers.writers import HERE, Options, Writer, spark_writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROOT: Final = Path(__file__).resolve().parents[2]
# `make setup-writers` makes it.
ENVIRONMENT: Final = _ROOT / ".venv-writers"
_PROGRAM: Final = Path(__file__).with_name("other_environment.py")
_FLAT: Final = ("id", "k", "b", "i", "l", "f", "d", "s", "x", "dt", "ts", "tz")
# The writers of another environment, and the columns that each can write.
ELSEWHERE: Final[Mapping[str, Sequence[str]]] = {
    "fastparquet": ("id", "k", "f", "d", "s", "x"),
    "deltalake": (*_FLAT, "n9", "n18", "n38", "a", "st", "m"),
    "chdb": (*(each for each in _FLAT if each not in ("ts", "x")), "n9", "n18", "n38"),
}
# No writer there has more options.
_MOST_ELSEWHERE: Final = 24
Format = Literal["paimon", "iceberg"]
KINDS: Final[Sequence[tuple[Format, bool]]] = (
    ("paimon", False),
    ("paimon", True),
    ("iceberg", False),
    ("iceberg", True),
)


@dataclass
class Files:
    """What a writer wrote: files by number, with the columns of each."""

    writer: str
    columns: Sequence[str]
    files: Mapping[int, Path]
    not_written: Mapping[int, str] = field(default_factory=dict)


def writers_here(spark: SparkSession) -> tuple[Writer, ...]:
    """The writers that run in this environment."""
    return (*HERE, spark_writer(spark))


def files_of(writer: Writer, folder: Path, every: int = 1, turn: int = 0) -> Files:
    """The files of a writer in this environment, with one of so many options."""
    chosen: dict[int, Options] = {
        number: each for number, each in enumerate(writer.options) if number % every == turn % every
    }
    folder.mkdir(parents=True, exist_ok=True)
    return Files(writer.name, writer.columns, *written_here(writer, chosen, folder))


def files_from_elsewhere(name: str, folder: Path) -> Files:
    """The files of a writer in the other environment.

    Raises:
        FileNotFoundError: that environment is not there.
    """
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(f"no {ENVIRONMENT.name}: run make setup-writers")
    folder.mkdir(parents=True, exist_ok=True)
    columns = ELSEWHERE[name]
    for number in range(_MOST_ELSEWHERE):
        found = as_table(rows(number * ROWS_PER_FILE, ROWS_PER_FILE, columns), columns)
        pq.write_table(found, folder / f"source-{number}.parquet")
    answer = subprocess.run(
        [str(python), str(_PROGRAM), name, str(folder)],
        check=True,
        capture_output=True,
        text=True,
    )
    files, reasons = {}, {}
    for number, line in enumerate(answer.stdout.splitlines()):
        told = json.loads(line)
        if "reason" in told:
            reasons[number] = f"{told['options']}: {told['reason']}"
        else:
            files[number] = folder / told["file"]
    return Files(name, columns, files, reasons)


def run_all(
    spark: SparkSession,
    files: Files,
    folder: Path,
    kinds: Sequence[tuple[Format, bool]] = KINDS,
    statements: Sequence[str] = tuple(STATEMENTS),
) -> Iterator[str]:
    """Put the files into a table of each kind and run the statements, one after another.

    Yields:
        For each table and statement: what was checked.

    Raises:
        AssertionError: what differs, with writer, table and statement.
    """
    for format_, marks in kinds:
        name = f"{format_}-{'marks' if marks else 'rewrites'}"
        table = ForeignTable(
            folder / f"{files.writer}-{name}", format_, marks, TableName("db", "t")
        )
        history = History(spark, table, files.columns)
        history.put(list(files.files.values()))
        history.expect(list(files.files))
        foreign = table.live_files()
        for statement in statements:
            try:
                STATEMENTS[statement](history)
                live = check(history, foreign)
            except AssertionError as error:
                raise AssertionError(f"{files.writer}, {name}, {statement}: {error}") from error
            counts = Counter(path in foreign for path in live)
            yield (
                f"{files.writer}, {name}, {statement}: {len(history.rows)} rows in "
                f"{counts[True]} files of the writer and {counts[False]} others"
            )
