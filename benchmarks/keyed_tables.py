"""Tables with a primary key for benchmarks, and a value that tells whether rows are the same."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks import lineitem
from benchmarks.comparison import timed
from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.request import FileSource, TableName

KEY = "id"

_OPTIONS = {"file.compression": "zstd"}


def create(
    warehouse: Path, name: TableName, columns: pa.Schema, options: Mapping[str, str]
) -> None:
    """An empty table whose primary key is ``id``; ``options`` has the number of buckets."""
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database(name.database, ignore_if_exists=True)
    schema = Schema.from_pyarrow_schema(
        columns, primary_keys=[KEY], options={**_OPTIONS, **options}
    )
    catalog.create_table(str(name), schema, ignore_if_exists=False)


def fill(spark: SparkSession, warehouse: Path, name: TableName, parts: Iterable[pa.Table]) -> None:
    """Replace all rows, so that the files are on the highest level."""
    landing = warehouse / "landing"
    landing.mkdir()
    for number, rows in enumerate(parts):
        pq.write_table(rows, landing / f"{number}.parquet", compression="zstd")
    statement = InsertOverwriteSpec("s", "table", by_name=True)
    timed(spark, warehouse, name, statement, FileSource("s", str(landing), "parquet"))
    shutil.rmtree(landing)


def upsert(warehouse: Path, name: TableName, rows: pa.Table) -> None:
    """One commit by pypaimon, whose files are of level 0."""
    builder = paimon_table(warehouse, name).new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(rows)
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()


def read_by_pypaimon(warehouse: Path, name: TableName) -> pa.Table:
    """All rows by pypaimon's reader."""
    builder = paimon_table(warehouse, name).new_read_builder()
    rows: pa.Table = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return rows


def record_files(warehouse: Path, name: TableName) -> list[str]:
    """The data files of the latest snapshot, of all levels."""
    splits = paimon_table(warehouse, name).new_read_builder().new_scan().plan().splits()
    return [str(file.file_path).removeprefix("file:") for split in splits for file in split.files]


def paimon_table(warehouse: Path, name: TableName) -> Any:
    """The table as pypaimon knows it."""
    from pypaimon import CatalogFactory

    return CatalogFactory.create({"warehouse": str(warehouse)}).get_table(str(name))


def newest_records(files: Sequence[str]) -> str:
    """A query for the newest record of each key, unless it deletes the row; for duckdb."""
    return f"""
    FROM read_parquet({list(files)}, union_by_name = true)
    QUALIFY row_number() OVER (PARTITION BY _KEY_{KEY} ORDER BY _SEQUENCE_NUMBER DESC) = 1
    AND _VALUE_KIND IN (0, 2)
    """


def fingerprint(rows: pa.Table | str, columns: Sequence[str]) -> tuple[object, ...]:
    """A value that equal rows share; ``rows`` may be a query."""
    types = dict(lineitem.COLUMNS)
    values = ", ".join(f"CAST({name} AS {types[name]})" for name in columns)
    source = f"({rows})" if isinstance(rows, str) else "rows"
    return duckdb.sql(f"SELECT count(*), sum(hash({values})) FROM {source}").fetchone() or ()
