"""Landed files as the source of an INSERT into a small table of the folder connector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import FileSource, JobRequest, Origin, Source, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, Statement
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import Row, SeedTable

TABLE = SeedTable(
    "landed",
    (
        ColumnSpec("id", "BIGINT"),
        ColumnSpec("n", "INT"),
        ColumnSpec("m", "DECIMAL(6,2)"),
        ColumnSpec("d", "DATE"),
        ColumnSpec("t", "TIMESTAMP"),
        ColumnSpec("v", "STRING"),
        ColumnSpec("p", "STRING"),
    ),
)


@dataclass(frozen=True)
class Landing:
    """A table that has no rows yet, and a folder for files."""

    harness: Harness
    folder: Path

    def file(self, name: str, content: str | bytes) -> str:
        """Write a file; its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def insert(
        self,
        path: str,
        format_: str,
        options: Mapping[str, str] | None = None,
        schema: str | None = None,
        query: str | None = None,
        operation_id: str = "operation-1",
        origin: Origin | None = None,
        dry_run: bool = False,
        zone: str = "UTC",
        called: str = "s",
        **more: Any,
    ) -> JobResult:
        """Insert the rows of a source; ``query`` is one over the source ``files``."""
        name = called if query is None else "files"
        sources: tuple[Any, ...] = (FileSource(name, path, format_, options or {}, schema, **more),)
        if query is not None:
            sources = (*sources, SqlSource("s", query))
        return self.run(
            InsertIntoSpec(sources[-1].name, by_name=True),
            *sources,
            operation_id=operation_id,
            options=JobOptions(session_time_zone=zone),
            origin=origin or Origin(),
            dry_run=dry_run,
        )

    def run(self, statement: Statement, *sources: Source, **more: Any) -> JobResult:
        """Run a statement on the table."""
        request = JobRequest(
            target=TARGET,
            catalog=self.harness.catalog,
            statement=statement,
            sources=sources,
            # Without Airflow nobody notes that an earlier operation of the task ended well.
            **{"operation_id": "operation-1", "after_ended_try": "run", **more},
        )
        return Job(request, self.harness.spark, self.harness.open()).run()

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """The table's rows, by id."""
        found = sorted(self.harness.read(), key=_by_id)
        return [tuple(row[name] for name in columns) for row in found]


def _by_id(row: Row) -> Any:
    return (row["id"] is None, row["id"])


def new_landing(make_table: Callable[..., Harness], folder: Path) -> Landing:
    """An empty table, and a folder below ``folder``."""
    harness = make_table("folder", TABLE, partitioned=False)
    return Landing(harness, folder / "landing zone")
