"""A process that runs random statements on an Iceberg table, as fast as it can, until it is time.

``by`` says who: ``ours`` goes through ``begin_merge``, sink and ``finish_merge`` as a job does,
without Spark and engine; ``pyiceberg`` appends; ``spark`` is Spark with Iceberg's own runtime. What
it is about to do, and what came of it, goes to a journal; each snapshot names its statement.

It takes part in races as ``tests.races.racer`` says.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.connectors.iceberg.format.deletes import DeletedRows
from spark_jobs.connectors.iceberg.read.scanned_files import scanned_file
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.tables import PlannedFile, TableHandle
from spark_jobs.spi.writes import MergeWrite, Operation
from tests.judge.iceberg_spark import CATALOG, IcebergSpark, IcebergSparkError
from tests.races.iceberg_table import SCHEMA, RaceCatalog, table_of
from tests.races.journal import journal_of
from tests.races.racer import take_part
from tests.races.statements import MODULUS, Statement, random_append, random_statement
from tests.support.faketime import mend_sleep
from tests.support.iceberg_changes import deleted, inserted, updated
from tests.support.paimon_tables import NAME

_ATTEMPTS = 8
_WARM = ("append", "append", "merge", "delete", "compact")
# What Iceberg's Java says of them.
_CONFLICTS = (
    "ValidationException",
    "CommitFailedException",
    "Found conflicting",
    "Found new conflicting",
    "missing data files",
)


class ConflictError(Exception):
    """Somebody else has committed what the statement read; nothing was published."""


class Ours:
    """This project."""

    attempts = _ATTEMPTS
    statement = staticmethod(random_statement)

    def __init__(self, plan: dict[str, Any]) -> None:
        self._connector = RaceCatalog.of(plan).connector(plan["workspace"])

    def attempt(self, statement: Statement, operation_id: str) -> int | None:
        """The new snapshot; None if there is nothing to change."""
        metadata, writes = self._connector.metadata, self._connector.writes
        table = metadata.load_table(NAME)

        def read_set(files: Sequence[PlannedFile]) -> Sequence[PlannedFile]:
            reads = statement.kind != "append"
            # Of files that are told of in conflicts, only the ranges are known.
            return [each for each in files if reads and each.ranges["p"].minimum == statement.p]

        files = tuple(read_set(metadata.plan_files(table)))
        found = [(file, *row) for file in files for row in _live_rows(table, file)]
        batches = self._batches(table, statement, found)
        if not batches:
            return None
        write = MergeWrite(
            Operation(operation_id, "digest", {}),
            files,
            (("v",), ()),
            (),
            2**27,
            read_set=read_set,
            overwrites=statement.kind == "compact",
        )
        handle = writes.begin_merge(table, write)
        sink = handle.sinks.open(uuid.uuid4().hex)
        for batch in batches:
            sink.store_merged_rows(batch)
        fragments = sink.finish()
        if statement.kind == "compact":
            fragments += writes.drop_files(table, handle, files)
        try:
            made = writes.finish_merge(table, handle, fragments, {OPERATION_ID: operation_id})
        except JobError as error:
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                writes.abort_merge(table, handle)
                # Each attempt notes its base anew; that of one given up would keep snapshots.
                writes.release_guard(table, operation_id)
            if error.code is ErrorCode.COMMIT_CONFLICT:
                raise ConflictError(error.message) from error
            raise
        writes.release_guard(table, operation_id)
        return made.snapshot_id

    def _batches(
        self,
        table: TableHandle,
        statement: Statement,
        found: Sequence[tuple[PlannedFile, int, int, int]],
    ) -> list[pa.RecordBatch]:
        new = statement.new_rows([row_id for _, _, row_id, _ in found])
        batches = []
        for file, position, row_id, value in found:
            if statement.kind == "compact":
                new.append((row_id, value, statement.p))
            elif statement.deletes(row_id):
                batches.append(deleted(file.ordinal, position, case=1, v=pa.int64()))
            elif statement.kind == "merge" and row_id in statement.ids:
                after = statement.updated(value)
                batches.append(updated(file.ordinal, position, case=0, v=after))
        rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in new]
        return [*batches, *([inserted(self._connector, table, rows)] if rows else [])]


def _live_rows(table: TableHandle, file: PlannedFile) -> list[tuple[int, int, int]]:
    """Position, id and value of each."""
    filesystem = table.native.storage.filesystem
    deletes = scanned_file(table.native, table.name, file.ordinal).deletes
    gone = set(DeletedRows(filesystem).positions(deletes).tolist())
    read = pq.ParquetFile(file.path, filesystem=filesystem).read(columns=["id", "v"]).to_pydict()
    pairs = enumerate(zip(read["id"], read["v"], strict=True))
    return [(n, *pair) for n, pair in pairs if n not in gone]


class Pyiceberg:
    """pyiceberg itself, which tries four times more by itself."""

    attempts = _ATTEMPTS
    # What it deletes it has to be told by keys: rows that came meanwhile would stay.
    statement = staticmethod(random_append)

    def __init__(self, plan: dict[str, Any]) -> None:
        self._catalog = RaceCatalog.of(plan).opened()

    def attempt(self, statement: Statement, operation_id: str) -> int | None:
        """None: the head may already be somebody else's."""
        from pyiceberg.exceptions import CommitFailedException

        table = self._catalog.load_table((NAME.database, NAME.table))
        properties = {OPERATION_ID: operation_id}
        try:
            table.append(table_of(statement.new_rows([])), snapshot_properties=properties)
        except CommitFailedException as error:
            raise ConflictError(str(error)) from error
        return None


class Spark:
    """Spark with Iceberg's own runtime: slower than others, so it loses most races."""

    attempts = 2

    @staticmethod
    def statement(chance: random.Random, partitions: int) -> Statement:
        """A statement that reads nothing is not lost."""
        chosen = chance.choice((random_append, random_append, random_statement))
        return chosen(chance, partitions)

    def __init__(self, plan: dict[str, Any]) -> None:
        self._spark = IcebergSpark(Path(plan["folder"]), RaceCatalog.of(plan).java)
        try:
            self._warm_up()
        except IcebergSparkError:
            # Or else the process waits for Spark's, and the race for the process.
            self._spark.close()
            raise

    def _warm_up(self) -> None:
        """The first statements of a JVM take many times as long as others."""
        warm = TableName(NAME.database, f"warm_{uuid.uuid4().hex[:8]}")
        self._spark.sql(
            f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{warm.database}",
            f"CREATE TABLE {CATALOG}.{warm} (id BIGINT, v BIGINT, p INT) USING iceberg "
            "PARTITIONED BY (p)",
            *(self._text(Statement(kind, 0, (1, 2)), warm) for kind in _WARM),
        )

    def attempt(self, statement: Statement, operation_id: str) -> int | None:
        """None: it does not tell the snapshot."""
        try:
            self._spark.sql(
                f"SET `spark.sql.iceberg.snapshot-property.{OPERATION_ID}`=`{operation_id}`",
                self._text(statement, NAME),
            )
        except IcebergSparkError as error:
            if any(text in str(error) for text in _CONFLICTS):
                raise ConflictError(str(error)[-300:]) from error
            raise
        return None

    def _text(self, statement: Statement, name: TableName) -> str:
        p, number, table = statement.p, statement.number, f"{CATALOG}.{name}"
        if statement.kind == "delete":
            return f"DELETE FROM {table} WHERE p = {p} AND id % 5 = {number}"
        if statement.kind == "compact":
            return (
                f"CALL {CATALOG}.system.rewrite_data_files(table => '{name}', "
                "options => map('rewrite-all', 'true', 'max-concurrent-file-group-rewrites', '1'))"
            )
        rows = ", ".join(f"(CAST({each} AS BIGINT))" for each in statement.ids)
        source = f"SELECT id, CAST({number} AS BIGINT) AS v, {p} AS p FROM VALUES {rows} AS x(id)"
        if statement.kind == "append":
            return f"INSERT INTO {table} {source}"
        return (
            f"MERGE INTO {table} t USING ({source}) s ON t.id = s.id AND t.p = {p} "
            f"WHEN MATCHED THEN UPDATE SET v = (3 * t.v + s.v) % {MODULUS} "
            "WHEN NOT MATCHED THEN INSERT *"
        )

    def close(self) -> None:
        """End the JVM."""
        self._spark.close()


_WRITERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "ours": Ours,
    "pyiceberg": Pyiceberg,
    "spark": Spark,
}


def race(writer: Any, plan: dict[str, Any]) -> None:
    """Random statements for ``plan["seconds"]``, with a journal of them."""
    chance, until = random.Random(plan["seed"]), time.monotonic() + plan["seconds"]
    with journal_of(plan) as note:
        while time.monotonic() < until:
            statement = writer.statement(chance, plan["partitions"])
            operation_id = f"op-{uuid.uuid4().hex}"
            began = time.monotonic()
            note(operation=operation_id, statement=asdict(statement), by=plan["by"], began=began)
            for number in range(1, writer.attempts + 1):
                try:
                    snapshot_id = writer.attempt(statement, operation_id)
                except ConflictError as error:
                    note(operation=operation_id, failed="COMMIT_CONFLICT", text=str(error))
                    if number == writer.attempts or time.monotonic() > until:
                        break
                    time.sleep(chance.uniform(0, 0.05))
                except Exception as error:  # noqa: BLE001 - the checker decides
                    code = getattr(getattr(error, "code", None), "name", type(error).__name__)
                    note(operation=operation_id, failed=code, text=str(error)[-500:])
                    break
                else:
                    note(operation=operation_id, done=snapshot_id)
                    break


@contextmanager
def opened(plan: dict[str, Any]) -> Iterator[Callable[[dict[str, Any]], None]]:
    """The races of the writer ``plan["by"]``."""
    writer = _WRITERS[plan["by"]](plan)
    yield partial(race, writer)
    with suppress(AttributeError):
        writer.close()


if __name__ == "__main__":
    mend_sleep()
    take_part(opened)
