"""What the engines have in common: an interface, the sources as views, the rows as one number."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession

from benchmarks import lineitem
from benchmarks.natives.data import MANY, Data
from benchmarks.natives.works import Append, Overwrite, Work

DATABASE: Final = "bench"
SOURCE: Final = "s"


class Engine(Protocol):
    """One side of the comparison. ``master``: the tables that every round starts from."""

    def load(self, data: Data, work: Work) -> None:
        """Write the master of the work's table unless it is there."""

    def restore(self, data: Data, work: Work) -> Path:
        """Make a copy of the master, with hard links; the folder in which it is."""

    def run(self, data: Data, work: Work) -> None:
        """Run the statement on the copy."""

    def rows(self, data: Data, work: Work) -> DataFrame:
        """The rows of the copy, with the columns of the table."""

    def drop(self) -> None:
        """Remove the copy."""


def source_rows(
    spark: SparkSession, data: Data, work: Work, staging: Callable[[], DataFrame]
) -> DataFrame:
    """The source of a work, which is also the view ``s``; ``staging``: the table with new rows."""
    if isinstance(work.statement, Append):
        spark.read.parquet(str(data.source("rows"))).createOrReplaceTempView("landed")
        rows = spark.sql(query(work))
    elif not isinstance(work.statement, Overwrite):
        rows = spark.read.parquet(str(data.source(work.source)))
    elif work.statement.landing == "table":
        rows = staging()
    elif work.statement.landing == "query":
        spark.read.parquet(str(data.source("files"))).createOrReplaceTempView("landed")
        rows = spark.sql(query(work))
    else:
        rows = spark.read.parquet(str(data.source(work.statement.landing)))
    rows.createOrReplaceTempView(SOURCE)
    return rows


def query(work: Work) -> str:
    """The query of landed rows that replaces partitions, or is added."""
    values = {name: name for name, _ in lineitem.COLUMNS} | {"part": "part"}
    values["price"] = "CAST(price * 2 AS DECIMAL(15, 2))"
    if work.table == "many":
        values["part"] = f"CAST(pmod(hash(id), {MANY}) AS INT)"
    columns = ", ".join(f"{value} AS {name}" for name, value in values.items())
    return f"SELECT {columns} FROM landed"


def digest(rows: DataFrame) -> tuple[int, int]:
    """A number of rows, and a number that two tables share when they hold the same rows."""
    names = ", ".join(f"`{name}`" for name in sorted(rows.columns))
    total = f"CAST(coalesce(sum(CAST(xxhash64({names}) AS DECIMAL(38, 0))), 0) AS STRING)"
    found = rows.selectExpr("count(1) AS n", f"{total} AS total").first()
    assert found is not None
    return int(found["n"]), int(found["total"])


def linked_copy(master: Path, copy: Path, is_data: Callable[[str], bool]) -> None:
    """Copy a folder; files for which ``is_data`` holds are hard links."""

    def link_data(source: str, target: str) -> object:
        return (os.link if is_data(source) else shutil.copy2)(source, target)

    shutil.copytree(master, copy, copy_function=link_data)
