"""Files of other writers in a table, statements on them, and a model in Python of what these do."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.request import JobRequest, SqlSource, TableSource
from spark_jobs.run import run
from tests.writers.columns import as_table, rows, table_types
from tests.writers.foreign_tables import ForeignTable
from tests.writers.writers import Options, Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_PER_FILE: Final = 20
Model = dict[int, dict[str, Any]]


@dataclass
class History:
    """A table of files of one writer, and its rows by id as they should be."""

    spark: SparkSession
    table: ForeignTable
    columns: Sequence[str]
    rows: Model = field(default_factory=dict)

    def put(self, files: Sequence[Path]) -> None:
        """Make the table of files with ``ROWS_PER_FILE`` rows each, by their numbers."""
        self.table.create(table_types(self.columns))
        self.table.put(files)

    def expect(self, numbers: Sequence[int]) -> None:
        """Expect the rows of files with these numbers."""
        for number in numbers:
            for each in rows(number * ROWS_PER_FILE, ROWS_PER_FILE, self.columns):
                self.rows[each["id"]] = each

    def expected(self) -> list[dict[str, Any]]:
        """The rows by id, with values as Arrow has them."""
        found = [self.rows[each] for each in sorted(self.rows)]
        return as_table(found, self.columns).to_pylist()

    def update(self) -> None:
        """Change rows of each file in several columns."""
        self._done("UPDATE db.t SET k = k + 1000, d = 0.25, s = 'new' WHERE id % 7 = 3")
        for number, each in self.rows.items():
            if number % 7 == 3:
                each.update(k=each["k"] + 1000, d=0.25, s="new")

    def delete(self) -> None:
        """Delete rows of each file."""
        self._done("DELETE FROM db.t WHERE id % 5 = 1")
        self.rows = {number: each for number, each in self.rows.items() if number % 5 != 1}

    def merge(self) -> None:
        """Change rows by a few keys, of some files, and insert one."""
        keys = sorted(self.rows)[2::17]
        values = ", ".join(f"({each}L)" for each in [*keys, -1])
        self._done(
            "MERGE INTO db.t t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET k = -5, "
            "d = 7 WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 1)",
            f"SELECT * FROM VALUES {values} AS s(id)",
        )
        for key in keys:
            self.rows[key].update(k=-5, d=7.0)
        self.rows[-1] = {**dict.fromkeys(self.columns), "id": -1, "k": 1}

    def overwrite(self) -> None:
        """Replace all rows by those of the table with an even ``k``."""
        query = f"SELECT {', '.join(self.columns)} FROM old WHERE k % 2 = 0"
        sources = (TableSource("old", self.table.name), SqlSource("s", query))
        self._run(InsertOverwriteSpec("s", "table", by_name=True), *sources)
        self.rows = {number: each for number, each in self.rows.items() if each["k"] % 2 == 0}

    def compact(self) -> None:
        """Put all files together; of Paimon's tables alone."""
        if self.table.format == "paimon":
            self._run(CompactSpec(mode="full"))

    def _done(self, text: str, source: str = "SELECT 1 AS one") -> None:
        changed(self.spark, self.table, text, source)

    def _run(self, statement: Any, *sources: Any) -> None:
        _run(self.spark, self.table, statement, *sources)


def changed(
    spark: SparkSession, table: ForeignTable, text: str, source: str = "SELECT 1 AS one"
) -> None:
    """Run a statement of SQL on the table, ``db.t``, whose source ``s`` is a query.

    Raises:
        AssertionError: it failed; has the error's code and message.
    """
    parsed = parse_statement(text, ["s"])
    _run(spark, table, parsed.statement, SqlSource("s", source), *parsed.sources)


def _run(spark: SparkSession, table: ForeignTable, statement: Any, *sources: Any) -> None:
    request = JobRequest(str(uuid.uuid4()), table.name, table.catalog, statement, sources)
    result = run(request, spark)
    if result.error is not None:
        raise AssertionError(f"{result.error.code}: {result.error.message}")


STATEMENTS: Final[Mapping[str, Callable[[History], None]]] = {
    "UPDATE": History.update,
    "DELETE": History.delete,
    "MERGE": History.merge,
    "COMPACT": History.compact,
    "INSERT OVERWRITE": History.overwrite,
}


def written_here(
    writer: Writer, options: Mapping[int, Options], folder: Path
) -> tuple[dict[int, Path], dict[int, str]]:
    """Files that ``writer`` writes with ``options`` by number, and why it does not write others."""
    files, reasons = {}, {}
    for number, each in options.items():
        found = rows(number * ROWS_PER_FILE, ROWS_PER_FILE, writer.columns)
        path = folder / f"{writer.name}-{number}.parquet"
        try:
            writer.write(as_table(found, writer.columns), path, each)
            files[number] = path
        except Exception as error:  # noqa: BLE001 - a library refuses its own options
            reasons[number] = f"{type(error).__name__}: {error}"
    return files, reasons
