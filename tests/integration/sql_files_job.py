"""Runs batches of statements in one Spark session, and prints the rows of tables; for tests.

Its argument is a folder: ``<case>.json`` has a batch, ``<case>.tables`` the names of tables. The
last line that it prints has, for each case, the errors of statements by name, and the rows of each
table by its name; None: there is no such table.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import (
    CatalogSpec,
    JobRequest,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.run import run, run_all


def main(folder: Path) -> None:
    """Run all batches of a folder."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("sql files")
    conf = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    found = {each.stem: outcome(spark, each) for each in sorted(folder.glob("*.json"))}
    sys.stdout.write("\n" + json.dumps(found, default=str) + "\n")


def outcome(spark: SparkSession, path: Path) -> dict[str, Any]:
    """What became of one batch."""
    batch = JobBatch.from_json(path.read_text())
    batch = replace(batch, requests=tuple(map(_with_tables, batch.requests)))
    results = run_all(batch, spark)
    names = [each.origin.statement for each in batch.requests]
    errors = {
        names[at]: f"{each.error.code}: {each.error.message}"
        for at, each in results.items()
        if each.error is not None
    }
    catalog = batch.requests[0].catalog
    tables = path.with_suffix(".tables").read_text().split()
    return {"errors": errors, "tables": {each: rows(spark, catalog, each) for each in tables}}


def rows(spark: SparkSession, catalog: CatalogSpec, name: str) -> list[list[Any]] | None:
    """All rows, sorted; a row of one text has the error if the table cannot be read."""
    sources = (TableSource("t", TableName.parse(name)), SqlSource("q", "SELECT * FROM t"))
    request = JobRequest("read", None, catalog, QuerySpec("q", limit=1_000), sources)
    result = run(request, spark)
    if result.error is not None:
        return None if result.error.code == "TABLE_NOT_FOUND" else [[result.error.message]]
    assert result.query is not None
    return sorted(([*each] for each in result.query.rows or ()), key=str)


def _with_tables(request: JobRequest) -> JobRequest:
    """A catalog in SQLite makes its own tables."""
    if request.catalog.connector != "iceberg":
        return request
    options = {**request.catalog.options, "init_catalog_tables": "true"}
    return replace(request, catalog=replace(request.catalog, options=options))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
