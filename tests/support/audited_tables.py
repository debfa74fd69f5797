"""A table with an audit, random statements on it, and drivers that are killed and tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.guards import Guards
from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec, TruncateTableSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, SqlSource, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import (
    Assignment,
    ColumnSpec,
    CreateTableSpec,
    DeleteAction,
    DeleteSpec,
    InsertAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
    UpdateSpec,
)
from spark_jobs.engine.job.statement_job import Job
from tests.support.audits import AUDIT, Row, make_audit_table, replayed
from tests.support.iceberg_files import catalog_spec, open_catalog, rows_of
from tests.support.killed_jobs import Steps, dying
from tests.support.paimon_tables import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.spi.connector import Connector

TARGET: Final = TableName("db", "target")
KINDS: Final = ("append", "primary-key", "iceberg-cow", "iceberg-mor")
_COLUMNS: Final = (
    ColumnSpec("id", "BIGINT", nullable=False),
    ColumnSpec("v", "STRING"),
    ColumnSpec("n", "INT"),
)
_MERGE: Final = (
    MergeCase("matched", DeleteAction(), "s.n = 0"),
    MergeCase("matched", UpdateAction((Assignment("v", "s.v"),))),
    MergeCase("not_matched", InsertAction(("s.id", "s.v", "s.n"), ("id", "v", "n"))),
)


def catalog_of(kind: str, warehouse: Path) -> CatalogSpec:
    """The catalog of a table of this kind."""
    is_iceberg = kind.startswith("iceberg")
    return catalog_spec(warehouse) if is_iceberg else CatalogSpec("paimon", str(warehouse))


@dataclass
class AuditedTable:
    """A table of one of ``KINDS``, empty at first, whose every statement is audited."""

    spark: SparkSession
    kind: str
    warehouse: Path
    steps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.kind.startswith("iceberg"):
            open_catalog(self.warehouse)
        connector = self.open()
        has_key = self.kind == "primary-key"
        options = {"bucket": "1"} if has_key else {}
        if self.kind == "iceberg-mor":
            modes = ("merge", "update", "delete")
            options = {f"write.{each}.mode": "merge-on-read" for each in modes}
        spec = CreateTableSpec(_COLUMNS, (), ("id",) if has_key else (), options)
        connector.metadata.create_table(TARGET, spec)
        make_audit_table(connector)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that say which row an update changes."""
        return ("id",) if self.kind == "primary-key" else ()

    @property
    def catalog(self) -> CatalogSpec:
        """The catalog as a request names it."""
        return catalog_of(self.kind, self.warehouse)

    def open(self) -> Connector:
        """The connector."""
        return open_connector(self.catalog, {})

    def rows(self) -> list[Row]:
        """The rows of the table."""
        return self._read(TARGET)

    def audit(self) -> list[Row]:
        """The rows of the audit, deletes first where one statement also inserts."""
        found = self._read(AUDIT)
        return sorted(found, key=lambda row: str(row["operation"]))

    def _read(self, name: TableName) -> list[Row]:
        """The rows as other libraries read them."""
        if self.kind.startswith("iceberg"):
            catalog = open_catalog(self.warehouse)
            return rows_of(catalog.load_table((name.database, name.table)))
        return read(self.open(), name)

    def merge(self, operation_id: str, source: str, task: str = "") -> JobRequest:
        """A MERGE that deletes, updates and inserts."""
        spec = MergeSpec("s", "t.id = s.id", _MERGE, "t", "s")
        request = self.request(operation_id, spec, source)
        return replace(request, origin=replace(request.origin, task_id=task or operation_id))

    def request(self, operation_id: str, statement: Any, source: str = "") -> JobRequest:
        """A statement of a task; ``source``: rows of id, v and n, as VALUES has them."""
        sources = ()
        if source:
            query = f"SELECT * FROM VALUES {source} AS s(id, v, n)"
            sources = (SqlSource("s", query),)
        return JobRequest(
            operation_id=operation_id,
            target=TARGET,
            catalog=self.catalog,
            statement=statement,
            sources=sources,
            origin=Origin("dag", "run", operation_id, retries=9),
            guards=Guards(audit_table=str(AUDIT)),
        )

    def random_request(self, operation_id: str, chance: random.Random) -> JobRequest:
        """A statement whose effect depends on the rows that there are."""
        ids = chance.sample(range(12), 5)
        values = ", ".join(f"({i}, '{operation_id}', {chance.randrange(3)})" for i in ids)
        low = chance.randrange(12)
        statements: list[tuple[Any, str]] = [
            (MergeSpec("s", "t.id = s.id", _MERGE, "t", "s"), values),
            (MergeSpec("s", "t.id = s.id", _MERGE, "t", "s"), values),
            (UpdateSpec("t", (Assignment("n", "n + 1"),), f"id > {low}"), ""),
            (DeleteSpec("t", f"id = {low}"), ""),
            (InsertOverwriteSpec("s", "table"), values),
            (TruncateTableSpec(), ""),
        ]
        if self.kind != "primary-key":
            statements.append((InsertIntoSpec("s"), values))
        statement, source = chance.choice(statements)
        return self.request(operation_id, statement, source)

    def tried(
        self, request: JobRequest, number: int, steps: Steps | None = None
    ) -> JobResult | None:
        """A try of a task; None: it was killed at the last of ``steps``."""
        request = replace(request, origin=replace(request.origin, try_number=number))
        if steps is None:
            return Job(request, self.spark, self.open()).run()
        with dying(self.open(), steps) as connector:
            return Job(request, self.spark, connector).run()
        self.steps = steps.names
        return None

    def require_audited(self, result: JobResult, before: list[Row], had: list[Row]) -> None:
        """The audit has got exactly what the operation did to the rows ``before``, once."""
        assert result.error is None, result.error
        audit = self.audit()
        own = [row for row in audit if row["operation_id"] == result.operation_id]
        assert len(audit) == len(had) + len(own)
        assert {row["snapshot_id"] for row in own} <= {result.new_snapshot_id}
        metrics = result.metrics
        assert len(own) == metrics.inserted + metrics.updated + metrics.deleted
        assert replayed(before, own, self.key) == replayed(self.rows(), [])
        assert not list(self.warehouse.glob("_operations/*.rows"))
