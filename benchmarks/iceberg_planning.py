"""Planning and commits on an Iceberg table of 20,000 files in 10 manifests.

``.venv-spark/bin/python -m benchmarks.iceberg_planning [--days 1000] [--files-per-day 20]
[--manifests 10] [--merges 3]``: prints the seconds of the steps of a DELETE that rewrites one file,
without Spark, on a new connector each time; then, with Spark, the phases of a MERGE that needs one
file of one day. All files of a day are one parquet file under several names.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.commit import timed_delete
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from tests.support.many_files import FIRST_DAY, NAME, ROWS, update_days

_CATALOG = "bench"
_EPOCH = dt.date(1970, 1, 1)


def catalog_in(folder: Path) -> CatalogSpec:
    """A SQL catalog, in SQLite."""
    options = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"file://{folder}",
        "catalog-name": _CATALOG,
    }
    return CatalogSpec("iceberg", str(folder), options)


def make_table(folder: Path, days: int, files_per_day: int, manifests: int) -> None:
    """A table with the columns day (partition), id and n, made in as many commits as manifests."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import DateType, IntegerType, LongType, NestedField

    schema = Schema(
        NestedField(1, "day", DateType()),
        NestedField(2, "id", LongType()),
        NestedField(3, "n", IntegerType()),
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    options = catalog_in(folder).options
    catalog = SqlCatalog(_CATALOG, uri=options["uri"], warehouse=options["warehouse"])
    catalog.create_namespace(NAME.database)
    table = catalog.create_table((NAME.database, NAME.table), schema, partition_spec=spec)
    for part in range(manifests):
        with table.transaction() as changes, changes.update_snapshot().fast_append() as append:
            for number in range(part * days // manifests, (part + 1) * days // manifests):
                for file in range(files_per_day):
                    append.append_data_file(_data_file(table, number, file))
    catalog.close()


def _data_file(table: Any, day: int, number: int) -> Any:
    from pyiceberg.conversions import to_bytes
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    date = FIRST_DAY + dt.timedelta(days=day)
    folder = Path(table.location().removeprefix("file://"), "data", f"day={date}")
    path, first = folder / f"{number}.parquet", folder / "0.parquet"
    if path == first:
        folder.mkdir(parents=True)
        rows = [{"day": date, "id": each, "n": 0} for each in range(ROWS)]
        pq.write_table(pa.Table.from_pylist(rows, schema_to_pyarrow(table.schema())), first)
    else:
        os.link(first, path)
    stored = (date - _EPOCH).days
    lowest = (stored, number * ROWS, 0)
    highest = (stored, (number + 1) * ROWS - 1, 0)
    fields = table.schema().fields
    bounds = [
        {
            each.field_id: to_bytes(each.field_type, value)
            for each, value in zip(fields, values, strict=True)
        }
        for values in (lowest, highest)
    ]
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file://{path}",
        file_format=FileFormat.PARQUET,
        partition=Record(stored),
        record_count=ROWS,
        file_size_in_bytes=path.stat().st_size,
        column_sizes={},
        value_counts={each.field_id: ROWS for each in fields},
        null_value_counts={each.field_id: 0 for each in fields},
        nan_value_counts={},
        lower_bounds=bounds[0],
        upper_bounds=bounds[1],
        spec_id=0,
    )


def main() -> None:
    """Print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=1000)
    parser.add_argument("--files-per-day", type=int, default=20)
    parser.add_argument("--manifests", type=int, default=10)
    parser.add_argument("--merges", type=int, default=3)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_table(folder, parsed.days, parsed.files_per_day, parsed.manifests)
        for _ in range(3):
            seconds = timed_delete(open_connector(catalog_in(folder), {}))
            _say("DELETE", seconds)
        if parsed.merges:
            _merge(folder, parsed.merges)


def _merge(folder: Path, runs: int) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).getOrCreate()
    for number in range(runs):
        result = update_days(spark, catalog_in(folder), f"run-{number}")
        if result.error is not None:
            raise SystemExit(f"{result.error.code}: {result.error.message}")
        _say("MERGE", dict(result.metrics.seconds))
    spark.stop()


def _say(what: str, seconds: dict[str, float]) -> None:
    steps = ", ".join(f"{step} {value:.2f} s" for step, value in seconds.items())
    sys.stdout.write(f"{what}: {steps}, together {sum(seconds.values()):.2f} s\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
