"""Reads all rows of a database in a process of its own; prints what they are, and its memory."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.outside_sources import JdbcSource
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.runtime.session import fixed_meaning
from spark_jobs.engine.source.database import database_rows
from spark_jobs.engine.source.outside_rows import kept_rows


def main(jar: str, url: str, login: str, memory: str) -> None:
    """Arguments: the driver's jar, the address, JSON of user and password, the heap."""
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", memory)
    builder = builder.config("spark.jars", jar).config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    with fixed_meaning(spark, "UTC"), tempfile.TemporaryDirectory() as folder:
        storage = open_connector(CatalogSpec("paimon", folder), {}).storage
        Path(folder, "scratch").mkdir()
        Lease(storage.filesystem, f"{storage.root}/scratch").take()
        source = JdbcSource("s", "conn", table="many", url=url)
        rows = database_rows(spark, source, json.loads(login))
        kept = kept_rows(spark, rows, storage, "scratch")
        found = kept.frame.selectExpr("count(*)", "sum(id)", "max(length(v))").first()
        sys.stdout.write(f"{json.dumps([kept.row_count, *(found or ())])}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
