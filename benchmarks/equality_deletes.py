"""A MERGE on an Iceberg table with many equality deletes, beside the same table without them.

``.venv-spark/bin/python -m benchmarks.equality_deletes [--rows 10000000] [--keys 1000000]
[--runs 3]``. Both tables are of version 2 and have the rows of ``lineitem`` in 20 files; one of
them has ``--keys`` ids, spread over all files, in one file of equality deletes. The statement
updates 1 % of the ids, copying files and marking rows. Each run is rolled back before the next one.
Prints the medians and their ratio.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from benchmarks import lineitem
from benchmarks.comparison import ROOT, session, timed
from benchmarks.iceberg_care_tables import DATABASE, HEAP, Place
from spark_jobs.connectors.iceberg.table.manifests import DELETES, EQUALITY_DELETES
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import RollbackSpec
from spark_jobs.contract.request import SqlSource, TableName
from tests.support.iceberg_foreign_files import add_file

_STEP: Final = 7919 * 31
_MERGE: Final = (
    "MERGE INTO {table} t USING s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET price = s.price, comment = s.comment"
)
_TABLES: Final = ("without", "with")


def build(place: Place, name: str, rows: int, keys: int, mode: str) -> None:
    """The table, with so many keys that are deleted by value."""
    with closing(place.library()) as catalog:
        catalog.create_namespace_if_not_exists(DATABASE)
        schema = lineitem.rows_between(0, 1).schema
        properties = {"format-version": "2", "write.merge.mode": mode}
        table = catalog.create_table((DATABASE, name), schema, properties=properties)
        for part in lineitem.target_files(rows):
            table.append(part)
        if keys:
            _delete_by_value(place, table, TableName(DATABASE, name), rows, keys)


def _delete_by_value(place: Place, table: Any, name: TableName, rows: int, keys: int) -> None:
    path = Path(table.location().removeprefix("file://"), "data", f"{uuid.uuid4()}.parquet")
    schema = table.schema().select("id").as_arrow()
    ids = pa.array(range(0, rows, rows // keys), pa.int64())
    pq.write_table(pa.table([ids], schema=schema), path)
    add_file(
        open_connector(place.catalog, {}),
        DELETES,
        name,
        content=EQUALITY_DELETES,
        file_format="PARQUET",
        file_path=f"file://{path}",
        file_size_in_bytes=path.stat().st_size,
        record_count=len(ids),
        equality_ids=[table.schema().find_field("id").field_id],
    )


def measure(spark: SparkSession, place: Place, mode: str, chosen: argparse.Namespace) -> None:
    """Let both tables take turns; the first round warms up."""
    count = chosen.rows // 100
    ids = f"SELECT id * {_STEP} % {chosen.rows} AS id FROM range({count})"
    new = SqlSource(
        "s",
        "SELECT id, CAST(id % 1000 AS DECIMAL(15, 2)) AS price, concat('upd ', id) AS comment "
        f"FROM ({ids})",
    )
    seconds: dict[str, list[float]] = {name: [] for name in _TABLES}
    for number in range(chosen.runs + 1):
        for kind in _TABLES:
            target = TableName(DATABASE, f"{kind}_{mode.replace('-', '_')}")
            with closing(place.library()) as catalog:
                base = catalog.load_table((DATABASE, target.table)).current_snapshot().snapshot_id
            parsed = parse_statement(_MERGE.format(table=target), ["s"])
            taken, result = timed(spark, place.catalog, target, parsed.statement, new)
            timed(spark, place.catalog, target, RollbackSpec(base, force=True))
            print(
                f"{mode}, {kind}{' (warm-up)' if not number else ''}: {taken:.2f} s, "
                f"{result.metrics.updated:,} rows updated, {dict(result.metrics.seconds)}",
                flush=True,
            )
            if number:
                seconds[kind].append(taken)
    without, with_deletes = (statistics.median(seconds[kind]) for kind in _TABLES)
    print(
        f"{mode}: {without:.2f} s without, {with_deletes:.2f} s with {chosen.keys:,} keys deleted "
        f"by value: {with_deletes / without:.2f} times as long",
        flush=True,
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--modes", nargs="*", default=["copy-on-write", "merge-on-read"])
    chosen = parser.parse_args()
    place = Place(Path(ROOT / f"equality-{uuid.uuid4().hex}"))
    (place.folder / "warehouse").mkdir(parents=True)
    try:
        for mode in chosen.modes:
            for kind, keys in zip(_TABLES, (0, chosen.keys), strict=True):
                build(place, f"{kind}_{mode.replace('-', '_')}", chosen.rows, keys, mode)
        spark = session(HEAP)
        for mode in chosen.modes:
            measure(spark, place, mode, chosen)
        spark.stop()
    finally:
        shutil.rmtree(place.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
