"""This project on tables of Paimon, as an engine of the comparison."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from benchmarks import lineitem
from benchmarks.comparison import append, copy_of, files_of, timed
from benchmarks.merge import enable_vectors, marked_rows
from benchmarks.natives import engines
from benchmarks.natives.data import FOLDER, TABLES, Data, made
from benchmarks.natives.works import Append, Merge, Work
from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec
from spark_jobs.contract.request import FileSource, Source, SqlSource, TableName, TableSource
from spark_jobs.contract.statements import Statement
from tests.support.forced_plans import Forced, forced_plan

_STAGING = TableName(engines.DATABASE, "staging")
_SMALL = TableName(engines.DATABASE, "small")
_SMALL_ROWS = 1_000


class Here:
    """Implements ``engines.Engine``: tables of Paimon, made with pypaimon.

    ``plan``: the physical plan of every MERGE that can run under it.
    """

    def __init__(self, spark: SparkSession, plan: Forced = "auto") -> None:
        self._spark = spark
        self._forced = plan
        self._warehouse = Path()
        self._name = _STAGING
        self._plan = ""

    @property
    def told(self) -> str:
        """How the last statement ran, and its seconds by phase."""
        return self._plan

    def load(self, data: Data, work: Work) -> None:
        """Write the master."""
        load_paimon(data, work)

    def restore(self, data: Data, work: Work) -> Path:
        """Copy the master."""
        self._warehouse = copy_of(paimon_master(data, work.table))
        self._name = TableName(engines.DATABASE, work.table)
        if work.vectors:
            enable_vectors(self._warehouse, self._name)
        wake(self._spark)
        return self._warehouse

    def run(self, data: Data, work: Work) -> None:
        """Run the statement."""
        statement, sources = statement_of(data, work, self._name)
        with forced_plan(self._forced):
            _, result = timed(self._spark, self._warehouse, self._name, statement, *sources)
        self._plan = f"{result.metrics.plan} {dict(result.metrics.seconds)}"

    def rows(self, data: Data, work: Work) -> DataFrame:
        """The rows of the copy."""
        return paimon_rows(self._spark, self._warehouse, self._name, work.vectors)

    def drop(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self._warehouse)


def wake(spark: SparkSession) -> None:
    """Run a small statement: Spark ends Python workers that had nothing to do for a minute."""
    warehouse = copy_of(made(FOLDER / "small", _write_small))
    text = f"MERGE INTO {_SMALL} t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    ids = SqlSource("s", f"SELECT id * {_SMALL_ROWS} AS id FROM range(2)")
    timed(spark, warehouse, _SMALL, parse_statement(text, ["s"]).statement, ids)
    shutil.rmtree(warehouse)


def _write_small(warehouse: Path) -> None:
    for low in (0, _SMALL_ROWS):
        append(warehouse, _SMALL, lineitem.rows_between(low, low + _SMALL_ROWS))


def paimon_master(data: Data, table: str) -> Path:
    """The warehouse with the master of a table."""
    return data.folder / "paimon" / table


def load_paimon(data: Data, work: Work) -> None:
    """Write the master of the work's table, one commit for each file."""

    def write(warehouse: Path) -> None:
        for name in (work.table, "staging") if work.table == "daily" else (work.table,):
            for part in data.table(name):
                rows = pq.read_table(part)
                append(warehouse, TableName(engines.DATABASE, name), rows, TABLES[name])

    made(paimon_master(data, work.table), write)


def paimon_rows(spark: SparkSession, warehouse: Path, name: TableName, vectors: bool) -> DataFrame:
    """The rows of a table of Paimon, as Spark reads its files and without those that are marked."""
    rows = spark.read.parquet(*files_of(warehouse, name))
    if not vectors:
        return rows
    marked = marked_rows(warehouse, name)
    found = marked.to_pydict()
    paths, places = found["path"], found["row"]
    at = [(Path(path).name, row) for path, row in zip(paths, places, strict=True)]
    gone = spark.createDataFrame(at, "file STRING, row BIGINT")
    located = rows.selectExpr("*", "_metadata.file_name AS _file", "_metadata.row_index AS _row")
    is_gone = (located["_file"] == gone["file"]) & (located["_row"] == gone["row"])
    return located.join(gone, is_gone, "left_anti").drop("_file", "_row")


def statement_of(data: Data, work: Work, name: TableName) -> tuple[Statement, tuple[Source, ...]]:
    """The statement of a work on a table, and its sources."""
    if isinstance(work.statement, Merge):
        text = work.statement.text(str(name), engines.SOURCE)
        source = FileSource(engines.SOURCE, str(data.source(work.source)), "parquet")
        return parse_statement(text, [engines.SOURCE]).statement, (source,)
    if isinstance(work.statement, Append):
        landed = FileSource("landed", str(data.source("rows")), "parquet")
        query = SqlSource(engines.SOURCE, engines.query(work))
        return InsertIntoSpec(engines.SOURCE, by_name=True), (landed, query)
    statement = InsertOverwriteSpec(engines.SOURCE, "dynamic", by_name=True)
    landing = work.statement.landing
    if landing == "table":
        return statement, (TableSource(engines.SOURCE, _STAGING),)
    if landing == "query":
        landed = FileSource("landed", str(data.source("files")), "parquet")
        return statement, (landed, SqlSource(engines.SOURCE, engines.query(work)))
    return statement, (FileSource(engines.SOURCE, str(data.source(landing)), "parquet"),)
