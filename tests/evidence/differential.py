"""Compares what readers find for conditions with Spark's answers on the same rows without files."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_jobs.contract.request import FileSource
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.source.materialized import materialize
from spark_jobs.engine.source.open_source import open_source
from spark_jobs.engine.source.pinned_tables import PinnedTables
from spark_jobs.errors import JobError
from tests.evidence.columns import ALL
from tests.evidence.layouts import Layout, all_rows
from tests.evidence.readers import Reader, SourceReader, TableReader
from tests.evidence.tables import NAME, TABLES, make_files, opened, scans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = ("parquet", "orc", "kept")
KINDS = (*TABLES, *SOURCES)
_AT_ONCE = 20
_TEMPORAL = re.compile(r"t\.`?(d|ts|tm|tn)\b")


@dataclass
class Tally:
    """How many combinations of condition, layout, kind and reader agreed, and which did not.

    ``told``: how many failures have been printed.
    """

    combinations: int = 0
    statements: int = 0
    told: int = 0
    failures: list[str] = field(default_factory=list)

    def compare(
        self,
        where: str,
        condition: str,
        wanted: frozenset[int],
        found: Sequence[int],
    ) -> None:
        """Compare the ids of a condition's rows, layout by layout."""
        for layout, ids in _ids():
            self.combinations += 1
            right, ours = wanted & ids, sorted(each for each in found if each in ids)
            if ours != sorted(right):
                self.failures.append(
                    f"{where}, {layout.name}: {condition}: {len(ours)} rows, not {len(right)}"
                )


@functools.cache
def _ids() -> list[tuple[Layout, frozenset[int]]]:
    return [(layout, frozenset(row["id"] for row in rows)) for layout, rows in all_rows()]


def expected(spark: SparkSession, conditions: Sequence[str]) -> dict[str, frozenset[int]]:
    """The ids of the rows that meet each condition, by Spark on rows that no file has."""
    rows = [tuple(_plain(v) for v in row.values()) for _, content in all_rows() for row in content]
    kinds = ", ".join(f"`{each.name}` {each.type}" for each in ALL)
    local = spark.createDataFrame(rows, _schema(spark, f"id INT, {kinds}")).alias("t")
    found: dict[str, frozenset[int]] = {}
    for some in _batches(conditions, 200):
        named = [F.expr(each).alias(f"c{number}") for number, each in enumerate(some)]
        answers = local.select("t.id", *named).collect()
        for number, each in enumerate(some):
            found[each] = frozenset(row[0] for row in answers if row[number + 1])
    return found


def _batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _schema(spark: SparkSession, ddl: str) -> StructType:
    return spark.createDataFrame([], ddl).schema


def _plain(value: object) -> object:
    return tuple(value.values()) if isinstance(value, dict) else value


def readers(spark: SparkSession, kind: str, folder: Path) -> Mapping[str, Reader]:
    """All readers of a kind of table or source, which is made in ``folder``."""
    if kind in TABLES:
        _, connector = opened(kind, folder)
        table = connector.metadata.load_table(NAME)
        return {
            name: TableReader.of(spark, connector, table, scan)
            for name, scan in scans(kind, connector).items()
        }
    return {"spark": SourceReader(_source(spark, kind, folder))}


def _source(spark: SparkSession, kind: str, folder: Path) -> DataFrame:
    _, connector = opened("append", folder)
    files = make_files("orc" if kind == "orc" else "parquet", folder / "files")
    source = FileSource("s", str(files), files.glob("*").__next__().suffix[1:])
    frame = open_source(spark, source, connector, PinnedTables()).frame
    if kind != "kept":
        return frame
    storage = connector.storage
    Lease(storage.filesystem, f"{storage.root}/scratch").take()
    return materialize(spark, frame, frame.columns, storage, "scratch").frame


def compare(
    kind: str,
    by_name: Mapping[str, Reader],
    wanted: Mapping[str, frozenset[int]],
    tally: Tally,
) -> None:
    """Compare the answers of all readers to all conditions of ``wanted``."""
    conditions = [each for each in wanted if kind != "orc" or not _TEMPORAL.search(each)]
    for name, reader in by_name.items():
        for some in _batches(conditions, _AT_ONCE):
            where = f"{kind} by {name}"
            for condition, ids in _found(reader, some, where, tally):
                tally.compare(where, condition, wanted[condition], ids)


def _found(
    reader: Reader, conditions: Sequence[str], where: str, tally: Tally
) -> Iterator[tuple[str, list[int]]]:
    """The ids of each condition's rows, all in one job."""
    dropped, frames = {}, []
    for each in conditions:
        try:
            gone, frame = reader.rows(each)
        except (JobError, PySparkException) as error:
            tally.failures.append(f"{where}: {each}: {str(error)[:300]}")
            continue
        dropped[each] = gone
        frames.append(frame.select(F.lit(each).alias("condition"), "id"))
    rows = functools.reduce(DataFrame.union, frames).collect()
    for each, gone in dropped.items():
        yield each, [*(row["id"] for row in rows if row["condition"] == each), *gone]
