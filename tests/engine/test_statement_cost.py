"""The fixed cost of statements: how often the driver calls the JVM, and how many jobs it starts.

The limits are what was reached, with room for small changes. Raise one only for a gain.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.request import FileSource, JobRequest, Source, SqlSource
from spark_jobs.contract.statements import (
    Assignment,
    ColumnSpec,
    DeleteAction,
    InsertAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
)
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.merge.physical_plan import Plan, PlanLimits
from spark_jobs.engine.runtime.older_spark import collected_as_arrow
from spark_jobs.spi.rows import ROW_ID
from tests.conformance.connectors import HARNESSES
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import SeedTable
from tests.support.statement_cost import Cost, counted

pytestmark = pytest.mark.slow

_TYPES = ("STRING", "INT", "DECIMAL(15, 2)", "DATE", "BIGINT")
_UPDATE = UpdateAction((Assignment("c0", "s.c0"), Assignment("c2", "s.c2")))
_INSERT = InsertAction(values=("s.id", "s.c0", "s.c2"), columns=("id", "c0", "c2"))
_DELETE = MergeCase("matched", DeleteAction(), "s.c1 = 1")
UPDATE = (MergeCase("matched", _UPDATE),)
MIXED = (_DELETE, *UPDATE, MergeCase("not_matched", _INSERT))
INSERT = (MergeCase("not_matched", _INSERT),)
INSERT_ALL = (MergeCase("not_matched", InsertAllAction()),)


def table_of(columns: int) -> SeedTable:
    """A table of ``id`` and other columns, all NULL, in two files."""
    specs = [ColumnSpec("id", "BIGINT")]
    specs += [ColumnSpec(f"c{n}", _TYPES[n % len(_TYPES)]) for n in range(columns - 1)]
    empty = {f"c{n}": None for n in range(columns - 1)}
    files = tuple(
        tuple({"id": id_, **empty} for id_ in range(first, first + 50)) for first in (0, 50)
    )
    return SeedTable(f"wide{columns}", tuple(specs), files)


def landed(harness: Harness, folder: Path) -> Source:
    """A parquet file with two of the target's rows, and two new ones."""
    path = folder / "source.parquet"
    connector = harness.connector
    table = connector.metadata.load_table(TARGET)
    files = connector.metadata.plan_files(table)
    rows = connector.scan.read(harness.spark, table, files, table.column_names)
    arrow = collected_as_arrow(rows.drop(ROW_ID).limit(4))
    pq.write_table(arrow.set_column(0, "id", pa.array([3, 55, 200, 201], pa.int64())), path)
    return FileSource("s", str(path), "parquet")


def cost(
    harness: Harness, clauses: tuple[MergeCase, ...], source: Source, plan: Plan, number: int
) -> Cost:
    statement = MergeSpec("s", "t.id = s.id", clauses, "t", "s")
    request = JobRequest(f"cost-{number}", TARGET, harness.catalog, statement, (source,))
    limits = PlanLimits(plan=plan)
    with counted(harness.spark) as found:
        result = Job(request, harness.spark, harness.open(), limits=limits).run()
    assert result.error is None, result.error
    assert str(result.metrics.plan).startswith(plan)
    return found


@pytest.mark.parametrize(
    ("plan", "kind", "columns", "clauses", "calls", "jobs"),
    [
        ("join", "append-cow", 16, UPDATE, 500, 3),
        ("join", "append-cow", 16, MIXED, 650, 3),
        ("join", "append-cow", 16, INSERT, 570, 3),
        ("join", "append-cow", 200, INSERT_ALL, 2_000, 3),
        ("join", "append-dv", 16, UPDATE, 500, 3),
        ("join", "append-dv", 16, MIXED, 650, 3),
        ("located", "append-cow", 16, MIXED, 650, 3),
        ("prepared", "append-cow", 16, UPDATE, 500, 3),
        ("prepared", "append-cow", 16, MIXED, 650, 3),
        ("prepared", "append-cow", 200, INSERT_ALL, 2_000, 3),
        ("prepared", "append-dv", 16, UPDATE, 500, 3),
        ("prepared", "append-dv", 16, MIXED, 650, 3),
    ],
)
def test_calls_and_jobs_of_a_statement(
    spark: SparkSession,
    tmp_path: Path,
    plan: Plan,
    kind: str,
    columns: int,
    clauses: tuple[MergeCase, ...],
    calls: int,
    jobs: int,
) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    harness = HARNESSES[kind](spark, warehouse, partitioned=False)
    harness.create(table_of(columns))
    source = landed(harness, tmp_path)
    cost(harness, clauses, source, plan, 1)

    found = cost(harness, clauses, source, plan, 2)

    # Python makes more calls for the same frame in PySpark 3.5.
    assert found.calls <= (calls if spark.version >= "4" else 1.25 * calls)
    assert found.jobs <= jobs


@pytest.mark.parametrize(("kind", "calls"), [("append-cow", 420), ("iceberg-cow", 420)])
def test_calls_and_jobs_of_an_insert_from_a_query(
    spark: SparkSession, tmp_path: Path, kind: str, calls: int
) -> None:
    """One job evaluates the query and stores its rows."""
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    harness = HARNESSES[kind](spark, warehouse, partitioned=False)
    harness.create(table_of(16))
    values = ", ".join(f"CAST(NULL AS {_TYPES[n % len(_TYPES)]}) AS c{n}" for n in range(15))
    query = SqlSource("s", f"SELECT id, {values} FROM range(1000)")
    spec = InsertOverwriteSpec("s", "table", by_name=True)
    for number in range(2):
        request = JobRequest(f"cost-{number}", TARGET, harness.catalog, spec, (query,))
        with counted(harness.spark) as found:
            result = Job(request, harness.spark, harness.open()).run()
        assert result.error is None, result.error

    assert found.calls <= (calls if spark.version >= "4" else 1.25 * calls)
    assert found.jobs == 1
