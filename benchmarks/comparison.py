"""What comparisons with plain Spark share: tables and copies of them, timed runs, alternation."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks import lineitem
from benchmarks.memory import PeakMemory
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, JobRequest, Source, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import Statement
from spark_jobs.run import run
from tests.support.java import needed_for_java

ROOT = Path(".bench").absolute()
_PROJECT = Path(__file__).resolve().parents[1]


def session(heap: str = "6g", settings: Mapping[str, str] | None = None) -> SparkSession:
    """Two local cores and one heap, as both sides get them; ``settings`` are added.

    Python workers are set up as for every job on a local master (``submit.local_master``).
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.update(needed_for_java(os.environ))
    spark = (
        SparkSession.builder.config(map=dict(settings or {}))
        .master("local[2]")
        .appName("benchmark")
        .config("spark.driver.memory", heap)
        .config("spark.sql.shuffle.partitions", str(lineitem.FILES))
        .config("spark.sql.adaptive.coalescePartitions.enabled", "false")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.executorEnv.PYTHONPATH", str(_PROJECT))
        .config("spark.python.daemon.module", "spark_jobs.worker_daemon")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def append(
    warehouse: Path,
    name: TableName,
    rows: pa.Table,
    keys: Sequence[str] = (),
    file_format: str = "parquet",
    options: Mapping[str, str] | None = None,
) -> None:
    """One commit with one file, into a Paimon append table that is made if it is not there.

    Without rows, the table is only made.
    """
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database(name.database, ignore_if_exists=True)
    given = {"bucket": "-1", "target-file-size": "1 gb", "file.compression": "zstd"}
    given |= {"file.format": file_format, **(options or {})}
    schema = Schema.from_pyarrow_schema(rows.schema, partition_keys=list(keys), options=given)
    catalog.create_table(str(name), schema, ignore_if_exists=True)
    if not rows.num_rows:
        return
    builder = catalog.get_table(str(name)).new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(rows)
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()


def copy_of(master: Path) -> Path:
    """A new warehouse that shares the data files and owns its metadata."""

    def link_data(source: str, target: str) -> object:
        return (os.link if "/bucket-" in source else shutil.copy2)(source, target)

    copy = ROOT / f"run-{uuid.uuid4().hex}"
    shutil.copytree(master, copy, copy_function=link_data)
    return copy


def files_of(warehouse: Path, name: TableName, partition: int | None = None) -> list[str]:
    """The data files of the latest snapshot, perhaps of one ``part`` alone."""
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    planned = connector.metadata.plan_files(connector.metadata.load_table(name))
    return [f.path for f in planned if partition in (None, f.partition.get("part"))]


def fingerprint(files: list[str], deleted: pa.Table | None = None) -> tuple[object, ...]:
    """A value that two sets of files share when they hold the same rows.

    ``deleted`` (``path`` string, ``row`` bigint) are rows that do not count.
    """
    columns = ", ".join(name for name, _ in lineitem.COLUMNS)
    rows = f"read_parquet({files}, filename = 'path', file_row_number = true)"
    query = f"SELECT count(*), sum(hash({columns})) FROM {rows} t"
    if deleted is not None:
        query += " ANTI JOIN deleted d ON t.path = d.path AND t.file_row_number = d.row"
    return duckdb.sql(query).fetchone() or ()


def timed(
    spark: SparkSession,
    catalog: CatalogSpec | Path,
    target: TableName,
    statement: Statement,
    *sources: Source,
) -> tuple[float, JobResult]:
    """Seconds and result of this project's run of a statement, which must not fail.

    A path as ``catalog`` is a warehouse of Paimon.
    """
    if isinstance(catalog, Path):
        catalog = CatalogSpec("paimon", str(catalog))
    request = JobRequest(
        operation_id=uuid.uuid4().hex,
        target=target,
        catalog=catalog,
        statement=statement,
        sources=sources,
    )
    started = time.perf_counter()
    result = run(request, spark)
    seconds = time.perf_counter() - started
    if result.error is not None:
        raise SystemExit(f"{result.error.code}: {result.error.message}")
    return seconds, result


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides of a comparison.

    ``ours`` gives seconds, result and warehouse, ``plain`` seconds and the folder with its files;
    ``told`` says what one run is worth telling, ``same`` whether both have the same rows.
    """

    name: str
    ours: Callable[[], tuple[float, JobResult, Path]]
    plain: Callable[[], tuple[float, Path]]
    told: Callable[[JobResult, Path], str]
    same: Callable[[Path, Path], bool]

    def measure(self, runs: int) -> None:
        """Alternate both sides and print what was seen; the first round warms up."""
        ours, plain, peak = [], [], 0
        for number in range(runs + 1):
            with PeakMemory() as memory:
                seconds, result, warehouse = self.ours()
            plain_seconds, out = self.plain()
            peak = max(peak, memory.largest_worker)
            print(
                f"{self.name} run {number}{' (warm-up)' if number == 0 else ''}: "
                f"this {seconds:.2f} s {dict(result.metrics.seconds)}, "
                f"plain Spark {plain_seconds:.2f} s, {self.told(result, out)}, "
                f"largest Python worker {memory.largest_worker / 2**20:.0f} MiB",
                flush=True,
            )
            if number:
                ours.append(seconds)
                plain.append(plain_seconds)
            same = self.same(warehouse, out)
            shutil.rmtree(warehouse)
            shutil.rmtree(out)
            if not same:
                raise SystemExit(f"{self.name}: the two sides have different rows")
        ratio = statistics.median(plain) / statistics.median(ours)
        print(
            f"{self.name}: this {statistics.median(ours):.2f} s, "
            f"plain Spark {statistics.median(plain):.2f} s, ratio {ratio:.2f}, "
            f"largest Python worker {peak / 2**20:.0f} MiB, same rows: yes"
        )
