"""The table of CREATE TABLE ... AS: created once, and found again by the operation that did.

A table that was created for the rows of an operation has the operation's id among its properties.
By it, a try that was killed between the table and its rows is told from a table of somebody else.
Its columns are those of a source, of which no row is read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField

from spark_jobs.contract.inserts import CREATED_BY, InsertStatement, NewTable
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.spark_types import parse_type
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.engine.analysis.opaque_columns import opaque_types, refuse_opaque
from spark_jobs.engine.analysis.schema_evolution import ddl_of
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.source.source_access import SourceAccess
from spark_jobs.engine.source.sources import Sources
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError, RequestError
from spark_jobs.spi.connector import Connector, find_table
from spark_jobs.spi.tables import TableHandle


@dataclass(frozen=True, slots=True)
class NewTarget:
    """The target of a request that creates it; ``statement`` is the request's."""

    request: JobRequest
    statement: InsertStatement
    new: NewTable
    spark: SparkSession
    connector: Connector
    progress: Progress
    access: SourceAccess = field(default_factory=SourceAccess)

    def is_wanted(self, ended: Collection[str] = ()) -> bool:
        """Whether rows are to be inserted: False if there is a table of others, which is kept.

        ``ended`` are earlier operations of the request's task run, whose table this is, too.

        Raises:
            CatalogError: TABLE_EXISTS.
        """
        table = self._existing()
        if table is None or self.new.when_exists == "replace" or self._is_own(table, ended):
            return True
        if self._is_unfinished(table):
            raise _exists(
                f"Table {table.name} exists, without rows: operation {table.created_by} created it "
                "and did not end.",
                "Clear the task of that operation; or drop the table.",
            )
        if self.new.when_exists == "keep":
            self.progress.say(f"{table.name} exists, and is left as it is")
            return False
        raise _exists(
            f"Table {table.name} exists.",
            "Write CREATE TABLE IF NOT EXISTS, CREATE OR REPLACE TABLE, or INSERT.",
        )

    def check(self, ended: Collection[str] = ()) -> None:
        """Check the statement before anything runs; raises as ``is_wanted`` and ``create``."""
        if self.is_wanted(ended):
            self._columns()

    def create(self) -> None:
        """Create the table unless it exists, and is as it is asked for.

        Raises:
            CatalogError: TABLE_DIFFERS.
            NotSupportedError: of ``replace``, there is a table that differs.
            JobError: the columns of the source cannot be told, or no table has them.
        """
        table, replaces = self._existing(), self.new.when_exists == "replace"
        maker = (table and table.created_by) or self.request.operation_id
        evidence = {} if replaces else {CREATED_BY: maker}
        spec = CreateTableSpec(
            columns=self._columns(),
            partition_keys=self.new.partition_keys,
            table_options={**self.new.table_options, **evidence},
            comment=self.new.comment,
            format=self.new.format,
        )
        try:
            created = self.connector.metadata.create_table(self.request.table, spec)
        except CatalogError as error:
            if not replaces or error.code is not ErrorCode.TABLE_DIFFERS:
                raise
            raise NotSupportedError(
                f"CREATE OR REPLACE TABLE would make another table: {error.problem}",
                "Alter the table; or drop it, and create it anew.",
            ) from None
        self.progress.say(f"{self.request.table} {'created' if created else 'exists'}")

    def _columns(self) -> tuple[ColumnSpec, ...]:
        name = self.statement.source
        with self.progress.phase("analyze"):
            return source_columns(
                self.request, self.spark, self.connector, self.progress, name, self.access
            )

    def _existing(self) -> TableHandle | None:
        return find_table(self.connector.metadata, self.request.table)

    def _is_unfinished(self, table: TableHandle) -> bool:
        """Whether another operation created the table, and has not inserted its rows."""
        maker = table.created_by
        log = OperationLog(self.connector.storage)
        return maker is not None and table.snapshot_id is None and log.is_unfinished(maker)

    def _is_own(self, table: TableHandle, ended: Collection[str]) -> bool:
        if self.request.after_ended_try == "run" and table.snapshot_id is not None:
            ended = ()  # or else it would have the rows of both
        return table.created_by in (self.request.operation_id, *ended)


def _exists(problem: str, remedy: str) -> CatalogError:
    return CatalogError(ErrorCode.TABLE_EXISTS, problem, remedy)


def source_columns(
    request: JobRequest,
    spark: SparkSession,
    connector: Connector,
    progress: Progress,
    source: str,
    access: SourceAccess,
) -> tuple[ColumnSpec, ...]:
    """The columns of the request's ``source``, which all may be NULL.

    Raises:
        JobError: as ``open_source``.
        NotSupportedError: no table has the type of a column.
    """
    moment = StatementTime(spark)
    sources = Sources(spark, connector, request, None, "", progress, moment, access=access)
    try:
        sources.open()
        schema = sources[source].frame.schema
    finally:
        sources.close()
    refuse_opaque(opaque_types(schema), schema.names, source)
    return tuple(_column(each) for each in schema)


def _column(field: StructField) -> ColumnSpec:
    kind = ddl_of(field.dataType, (field.name,))
    try:
        parse_type(kind)
    except RequestError:
        raise NotSupportedError(
            f"column {field.name} of the source has the type {kind.upper()}, which no table has.",
            "Cast it in the query.",
        ) from None
    return ColumnSpec(field.name, kind, comment=field.metadata.get("comment"))
