"""Dimensions with versions (SCD2): small tables of each kind, and one run of the operator's job."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.request import FileSource, JobRequest, Source
from spark_jobs.contract.scd2 import VERSIONS, Scd2Source
from spark_jobs.contract.scd2_merge import scd2_merge
from spark_jobs.contract.statements import ColumnSpec
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.harness import TARGET, Harness
from tests.conformance.iceberg_harness import IcebergHarness
from tests.conformance.paimon_harness import PaimonHarness
from tests.conformance.tables import SeedTable
from tests.support.table_kinds import ICEBERG, KINDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.contract.result import JobResult

Row = dict[str, Any]
START = dt.datetime.fromisoformat("2026-01-01")
_KINDS = {**KINDS, **{kind.name: kind for kind in ICEBERG}}
COLUMNS = (
    ColumnSpec("id", "BIGINT", nullable=False),
    ColumnSpec("v", "STRING"),
    ColumnSpec("n", "DECIMAL(6, 2)"),
    ColumnSpec("u", "STRING"),
    ColumnSpec("valid_from", "TIMESTAMP_NTZ", nullable=False),
    ColumnSpec("valid_to", "TIMESTAMP_NTZ"),
    ColumnSpec("is_current", "BOOLEAN"),
    ColumnSpec("is_deleted", "BOOLEAN"),
)
_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.string()),
        ("n", pa.string()),
        ("u", pa.string()),
        ("at", pa.timestamp("us")),
        ("gone", pa.bool_()),
    ]
)


class _KeyedHarness(PaimonHarness):
    @property
    def primary_key(self) -> tuple[str, ...]:
        return ("id", "valid_from") if self.kind.has_key else ()


def at(number: int) -> dt.datetime:
    """A time by its number."""
    return START + dt.timedelta(hours=number)


def dimension(
    spark: SparkSession,
    folder: Path,
    kind: str,
    columns: Sequence[ColumnSpec] = COLUMNS,
    files: Sequence[Sequence[Row]] = (),
) -> Harness:
    """A new table of a kind, with rows of ``files``."""
    folder.mkdir(parents=True)
    chosen = _KINDS[kind]
    make = IcebergHarness if chosen in ICEBERG else _KeyedHarness
    harness = make(spark, folder, partitioned=False, kind=chosen)
    stored = tuple(map(tuple, files))
    harness.create(SeedTable("dimension", tuple(columns), stored, bucket_key="id"))
    return harness


def batch(folder: Path, rows: Sequence[Row], schema: pa.Schema = _SCHEMA) -> FileSource:
    """Rows of a source, as a file of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"batch-{len(list(folder.iterdir()))}.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
    return FileSource("rows", str(path), "parquet")


def spec(**given: Any) -> Scd2Source:
    """The versions of a source, by default with all columns."""
    usual: dict[str, Any] = {
        "name": VERSIONS,
        "source": "rows",
        "keys": ("id",),
        "tracked": ("v", "n"),
        "valid_from": "valid_from",
        "valid_to": "valid_to",
        "current": "is_current",
        "deleted": "is_deleted",
        "effective": "at",
        "late": "insert_between",
        "delete_marker": "gone",
        "hard_deletes": "close",
    }
    return Scd2Source(**{**usual, **given})


def run(
    harness: Harness,
    versions: Scd2Source,
    *sources: Source,
    operation: str = "",
    guards: Guards | None = None,
    **more: Any,
) -> JobResult:
    """One run; each is an operation of its own unless it has a name."""
    folder = harness.warehouse / "_operations"
    number = len(list(folder.iterdir())) if folder.exists() else 0
    request = JobRequest(
        operation_id=operation or f"run-{number}-{harness.latest_snapshot()}",
        target=TARGET,
        catalog=harness.catalog,
        statement=scd2_merge(versions),
        sources=(*sources, versions),
        guards=guards,
        **more,
    )
    return Job(request, harness.spark, harness.open()).run()


def history(harness: Harness, names: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """The rows, sorted by key and time; ``names``: of these columns, by default of all."""
    rows: list[Mapping[str, Any]] = sorted(
        harness.read(), key=lambda each: (each["id"], each["valid_from"])
    )
    wanted = names or [each.name for each in COLUMNS]
    return [tuple(_plain(row[name]) for name in wanted) for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        hours = (value.replace(tzinfo=None) - START) / dt.timedelta(hours=1)
        return int(hours) if hours == int(hours) else hours
    return None if value is None else value if isinstance(value, bool | int | str) else str(value)
