"""Runs MERGE statements of this project on a warehouse, with an Arrow table as source."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import Cardinality, MergeCase, MergeSpec
from spark_jobs.main import run
from tests.judge.tables import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def merge(
    spark: SparkSession,
    warehouse: Warehouse,
    source: pa.Table,
    cases: Sequence[MergeCase],
    *,
    on: str = "t.id = s.id",
    table: str = "d.t",
    aliases: tuple[str, str] = ("t", "s"),
    cardinality: Cardinality = "effective",
) -> JobResult:
    """``MERGE INTO table t USING source s ON on`` with the clauses."""
    operation_id = str(uuid.uuid4())
    file = warehouse.path.parent / f"source-{operation_id}.parquet"
    pq.write_table(source, file)
    request = JobRequest(
        operation_id=operation_id,
        target=TableName.parse(table),
        catalog=CatalogSpec("paimon", str(warehouse.path)),
        statement=MergeSpec("s", on, tuple(cases), *aliases, cardinality),
        sources=(FileSource("s", str(file), "parquet"),),
    )
    return run(request, spark)
