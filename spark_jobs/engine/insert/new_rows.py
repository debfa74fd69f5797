"""The rows that a statement adds, before they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from spark_jobs.contract.inserts import InsertStatement
from spark_jobs.engine.insert.insert_writer import CopiedRows
from spark_jobs.engine.insert.partition_shares import Partition
from spark_jobs.engine.write.clustering import (
    Cluster,
    FileSize,
    clusters_of,
    with_layout_columns,
)
from spark_jobs.engine.write.statement_run import SparkRun
from spark_jobs.spi.writes import WriteLayout


@dataclass(frozen=True, slots=True)
class NewRows:
    """The rows that a statement adds: as they are stored, with their clusters counted.

    ``rows`` of a frame are distributed to other tasks; others are written by the tasks that read
    them. ``row_bytes`` is the approximate size of a row in a data file.
    """

    rows: DataFrame | CopiedRows
    clusters: Sequence[Cluster]
    source_rows: int
    row_bytes: float

    def partitions(self, keys: int) -> list[Partition]:
        """The distinct partitions: the first ``keys`` values of each cluster's key."""
        return list(dict.fromkeys(cluster.key[:keys] for cluster in self.clusters))


def new_rows_of(rows: DataFrame, layout: WriteLayout, row_bytes: float, size: float) -> NewRows:
    """``rows``, which are the same whenever they are read, counted by cluster.

    ``row_bytes`` is the average size of a row in the table's files, 0 if it has none: ``size``,
    about that of all ``rows`` in data files in bytes, tells it then.
    """
    rows = with_layout_columns(rows, layout)
    clusters = clusters_of(rows, layout)
    count = sum(cluster.rows for cluster in clusters)
    return NewRows(rows, clusters, count, row_bytes or size / max(count, 1))


def file_size(
    run: SparkRun[InsertStatement], row_bytes: float, *, keeps_clusters: bool = False
) -> FileSize:
    """The sizes that decide how many files the new rows of a run fill."""
    return FileSize(
        row_bytes=row_bytes,
        target=run.options.target_file_size,
        parallelism=run.spark.sparkContext.defaultParallelism,
        keeps_clusters=keeps_clusters,
    )
