"""Who answers a condition: the engine on a table by each of its readers, or a source's frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.engine.analysis.analyzer import analyze_filtered
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.pruning.needed_files import Pruning
from spark_jobs.spi.rows import ROW_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.spi.connector import Connector, ConnectorScan
    from spark_jobs.spi.tables import PlannedFile, TableHandle


class Reader(Protocol):
    """Reads the rows that meet a condition on ``t``."""

    def rows(self, condition: str) -> tuple[frozenset[int], DataFrame]:
        """The ids of rows that were not read, and a frame with the column ``id`` of the others."""
        ...


@dataclass(frozen=True)
class SourceReader:
    """Reads a frame over files."""

    frame: DataFrame

    def rows(self, condition: str) -> tuple[frozenset[int], DataFrame]:
        """All rows are read."""
        return frozenset(), self.frame.alias("t").where(condition).select("id")


@dataclass(frozen=True)
class TableReader:
    """Reads a table as a DELETE does, which also drops whole files."""

    spark: SparkSession
    table: TableHandle
    scan: ConnectorScan
    files: Sequence[PlannedFile]
    ids: Mapping[int, frozenset[int]]

    @classmethod
    def of(
        cls, spark: SparkSession, connector: Connector, table: TableHandle, scan: ConnectorScan
    ) -> TableReader:
        """The reader of all files of a table."""
        files = connector.metadata.plan_files(table)
        ids: dict[int, set[int]] = {}
        for key, row in scan.read(spark, table, files, ["id"]).select("id", ROW_ID).collect():
            ids.setdefault(row[0], set()).add(key)
        return cls(spark, table, scan, files, {n: frozenset(each) for n, each in ids.items()})

    def rows(self, condition: str) -> tuple[frozenset[int], DataFrame]:
        """The rows of dropped files, and those that are found in the others."""
        merge = analyze_filtered(self.spark, DeleteSpec("t", condition), self.table)
        pruning = Pruning(self.spark, merge, None, None, StatementTime(self.spark))
        needed = pruning.needed(self.files)
        (where,) = merge.read_set.on_predicates
        columns = sorted({"id", *where.target_columns})
        found = self.scan.read(self.spark, self.table, needed.scanned, columns)
        found = found.select(*map(quote, columns)).alias("t").where(condition).select("id")
        dropped = frozenset().union(*(self.ids[file.ordinal] for file in needed.dropped))
        return dropped, found
