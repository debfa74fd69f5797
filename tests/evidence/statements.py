"""Whole statements on the same tables, as dry runs: their counts are those of the conditions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableSource
from spark_jobs.contract.statements import (
    DeleteAction,
    DeleteSpec,
    InsertAction,
    MergeCase,
    MergeSpec,
    Statement,
)
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from tests.evidence.columns import COLUMNS, Column
from tests.evidence.differential import Tally, expected
from tests.evidence.layouts import all_rows
from tests.evidence.tables import NAME, make_table
from tests.support.forced_plans import FORCED, Forced, forced_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.contract.request import Source
    from spark_jobs.contract.result import Metrics
    from spark_jobs.spi.connector import Connector

STATEMENT_TABLES: Final = ("append", "iceberg")
_ZONE: Final = "Europe/Berlin"
# What people met in other engines, and what was found here.
CORE: Final = (
    "t.f > 5",
    "t.f = double('NaN')",
    "NOT (t.f < 5)",
    "t.f IN (double('NaN'), 6.5D)",
    "t.f = 0",
    "t.g = double('-0.0')",
    "t.st.x > 5",
    "t.`qf.d` >= double('Infinity')",
    "t.tm < TIMESTAMP'1970-01-01 00:00:00.0005Z'",
    "t.tm <> TIMESTAMP'1970-01-01 00:00:00.0005Z'",
    "t.ts > TIMESTAMP'1970-01-01 00:00:00Z'",
    "t.i > 0",
    "t.n > -0.5BD",
    "t.n < 9223372036854775808",
    "t.m >= 0.001BD",
    "t.s > 'b'",
)


def all_ids() -> int:
    """How many rows a table has; their ids count from 0."""
    return sum(len(content) for _, content in all_rows())


@dataclass(frozen=True)
class Statements:
    """Runs statements on a table and compares their counts."""

    spark: SparkSession
    kind: str
    catalog: CatalogSpec
    connector: Connector
    tally: Tally

    def conditions(self, wanted: Mapping[str, frozenset[int]]) -> None:
        """A condition as WHERE, in the ON of a MERGE, and in a query over the table."""
        rows = all_ids()
        source = SqlSource("s", f"SELECT CAST(id AS INT) AS id FROM range({rows})")
        for condition, ids in wanted.items():
            self._count(condition, "DELETE", DeleteSpec("t", condition), (), len(ids), 0)
            merge = MergeSpec(
                "s",
                f"t.id = s.id AND {condition}",
                (
                    MergeCase("matched", DeleteAction()),
                    MergeCase("not_matched", InsertAction(("s.id",), ("id",))),
                ),
                "t",
                "s",
            )
            self._count(condition, "MERGE", merge, (source,), len(ids), rows - len(ids))
            read = TableSource("r", NAME)
            query = SqlSource("q", f"SELECT id FROM r AS t WHERE {condition}")
            among = DeleteSpec("t", "id IN (SELECT id FROM q)")
            self._count(condition, "query", among, (read, query), len(ids), 0)

    def keys(self, columns: Sequence[Column], wanted: Mapping[str, frozenset[int]]) -> None:
        """Join keys of each type, under each plan that can run them."""
        for column in columns:
            values = ", ".join(f"({literal})" for literal in column.literals[:2])
            source = SqlSource("s", f"SELECT k FROM VALUES {values} AS s(k)")
            merge = MergeSpec(
                "s", f"t.`{column.name}` = s.k", (MergeCase("matched", DeleteAction()),), "t", "s"
            )
            for plan in FORCED:
                found = len(wanted[of_keys(column)])
                self._count(f"key {column.name}", plan, merge, (source,), found, 0, plan)

    def _count(
        self,
        what: str,
        how: str,
        statement: Statement,
        sources: tuple[Source, ...],
        deleted: int,
        inserted: int,
        plan: Forced = "auto",
    ) -> None:
        request = JobRequest(
            f"op-{uuid.uuid4().hex}", NAME, self.catalog, statement, sources, dry_run=True
        )
        options = replace(request.options, session_time_zone=_ZONE)
        request = replace(request, options=options)
        with forced_plan(plan):
            result = Job(request, self.spark, self.connector).run()
        self.tally.statements += 1
        found = _counts(result.metrics)
        if result.error is not None or found != (deleted, inserted):
            told = result.error.message[:300] if result.error else f"{found}"
            self.tally.failures.append(
                f"{self.kind}: {how}: {what}: {told}, not {(deleted, inserted)}"
            )


def run_statements(
    spark: SparkSession,
    kind: str,
    folder: Path,
    tally: Tally,
    conditions: Sequence[str] = CORE,
    columns: Sequence[Column] = COLUMNS,
) -> None:
    """Run statements with ``conditions``, and with ``columns`` as keys, on a new table."""
    catalog = make_table(kind, folder)
    with fixed_settings(spark, meaningful_settings(_ZONE)):
        wanted = expected(spark, [*conditions, *map(of_keys, columns)])
    statements = Statements(spark, kind, catalog, open_connector(catalog, {}), tally)
    statements.conditions({each: wanted[each] for each in conditions})
    statements.keys(columns, wanted)


def of_keys(column: Column) -> str:
    """The condition whose rows have one of the keys of ``Statements.keys``."""
    return f"t.`{column.name}` IN ({', '.join(column.literals[:2])})"


def _counts(metrics: Metrics) -> tuple[int, int]:
    return metrics.deleted, metrics.inserted
