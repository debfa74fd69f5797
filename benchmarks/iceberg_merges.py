"""Many merges on a merge-on-read table of Iceberg, with and without compactions in between.

``.venv-spark/bin/python -m benchmarks.iceberg_merges [--rows 1000000] [--merges 100]
[--compact-every 10] [--files 8]``: each merge updates a thousandth of the rows, spread over the
table, and inserts a hundredth as many. Prints the median seconds of ten merges at a time with the
table's files before them, the share of the last ten in the first ten, and of the last merge in the
first one; then the same with a ``minor`` compaction behind every so many merges. 20 merges into
another table warm up.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import uuid
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from benchmarks.comparison import ROOT, session, timed
from benchmarks.iceberg_care_tables import DATABASE, HEAP, Place
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import SqlSource, TableName

_MERGE = (
    "MERGE INTO {table} t USING s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET amount = s.amount, comment = s.comment "
    "WHEN NOT MATCHED THEN INSERT *"
)
_AT_A_TIME = 10


def build(place: Place, name: str, rows: int, files: int) -> None:
    """The table, with so many files that have ids from all over the table."""
    with closing(place.library()) as catalog:
        catalog.create_namespace_if_not_exists(DATABASE)
        schema = pa.schema([("id", pa.int64()), ("amount", pa.float64()), ("comment", pa.string())])
        properties = {"format-version": "2", "write.merge.mode": "merge-on-read"}
        table = catalog.create_table((DATABASE, name), schema, properties=properties)
        for number in range(files):
            ids = np.arange(number, rows, files)
            comments = [f"comment {each * 7919 % rows}" for each in ids]
            columns = [ids, np.random.default_rng(number).random(len(ids)), comments]
            table.append(pa.table(list(map(pa.array, columns)), schema=schema))


def source(number: int, rows: int) -> SqlSource:
    """Every thousandth id, another one each time, and some ids that are new."""
    changed = f"SELECT id * 1000 + {number * 7 % 1000} AS id FROM range({rows // 1000})"
    new = f"SELECT id + {rows + number * (rows // 100_000)} AS id FROM range({rows // 100_000})"
    value = f"CAST({number} AS DOUBLE) AS amount, concat('merge {number} ', id) AS comment"
    return SqlSource("s", f"SELECT id, {value} FROM ({changed} UNION ALL {new})")


def files_of(place: Place, name: str) -> tuple[int, int]:
    """The number of data files and of files of deletes."""
    with closing(place.library()) as catalog:
        summary = catalog.load_table((DATABASE, name)).current_snapshot().summary
    return int(summary["total-data-files"]), int(summary["total-delete-files"])


def measure(spark: SparkSession, place: Place, name: str, chosen: argparse.Namespace) -> None:
    """Merge, and print what it took."""
    build(place, name, chosen.rows, chosen.files)
    parsed = parse_statement(_MERGE.format(table=f"{DATABASE}.{name}"), ["s"])
    target = TableName(DATABASE, name)
    seconds: list[float] = []
    compacted: list[float] = []
    before = files_of(place, name)
    for number in range(chosen.merges):
        new = source(number, chosen.rows)
        seconds.append(timed(spark, place.catalog, target, parsed.statement, new)[0])
        if name == "compacted" and (number + 1) % chosen.compact_every == 0:
            compacted.append(timed(spark, place.catalog, target, CompactSpec())[0])
        if (number + 1) % _AT_A_TIME == 0:
            some = statistics.median(seconds[-_AT_A_TIME:])
            files = f"from {before[0]} data files and {before[1]} of deletes"
            print(f"{name}, merges up to {number + 1}: {some:.2f} s, {files}", flush=True)
            before = files_of(place, name)
    ends = [statistics.median(each) for each in (seconds[:_AT_A_TIME], seconds[-_AT_A_TIME:])]
    print(
        f"{name}: the last ten merges took {ends[1] / ends[0]:.2f} times the first ten, the last "
        f"one {seconds[-1] / seconds[0]:.2f} times the first; {sum(seconds):.0f} s of merges, "
        f"{sum(compacted):.0f} s of {len(compacted)} compactions"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--merges", type=int, default=100)
    parser.add_argument("--compact-every", type=int, default=10)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--cases", nargs="*", default=["plain", "compacted"])
    chosen = parser.parse_args()
    place = Place(Path(ROOT / f"merges-{uuid.uuid4().hex}"))
    (place.folder / "warehouse").mkdir(parents=True)
    spark = session(HEAP)
    try:
        warm = argparse.Namespace(**{**vars(chosen), "merges": 2 * _AT_A_TIME})
        measure(spark, place, "warm", warm)
        for name in chosen.cases:
            measure(spark, place, name, chosen)
    finally:
        spark.stop()
        shutil.rmtree(place.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
