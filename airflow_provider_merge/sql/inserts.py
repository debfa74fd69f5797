"""INSERT, TRUNCATE TABLE and ALTER TABLE … DROP PARTITION, as in Spark's grammar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from airflow_provider_merge.sql.create_table import read_created_as
from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.defaults import default_edits
from airflow_provider_merge.sql.queries import QueryText
from airflow_provider_merge.sql.settings import OverwritePolicy, read_options
from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    PartitionStatement,
    TruncateTableSpec,
)
from spark_jobs.contract.request import TableName
from spark_jobs.contract.source_names import INSERT_SOURCE
from spark_jobs.errors import ErrorCode, RequestError, error_of

# The view of the rows that INSERT writes; the builders of the operators call it so too.

_QUERY_STARTS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")

Made = TypeVar("Made")
Values = dict[str, str]

# Behind ALTER TABLE ... DROP, what is no partition of rows.
_OF_DEFINITIONS: Final = (
    ("COLUMN",),
    ("COLUMNS",),
    ("PARTITION", "FIELD"),
    ("IDENTIFIER", "FIELDS"),
)


class PartitionStatementReader:
    """Reads what stands behind INSERT, TRUNCATE and ALTER; ``start`` is where the statement began.

    The mode of an INSERT OVERWRITE is ``static`` where its PARTITION has values, else ``table``, as
    in Spark; the text does not say whether the operator wants another.
    """

    def __init__(self, cursor: Cursor, queries: QueryText, start: int) -> None:
        self.cursor = cursor
        self.queries = queries
        self.sql = cursor.sql
        self.views = queries.views
        self.start = start
        self.overwrites: OverwritePolicy | None = None

    def read_insert(self) -> tuple[TableName, PartitionStatement]:
        """Target and statement; errors are those of ``StatementReader.read``."""
        cursor = self.cursor
        evolution, overwrites = self._kind_of_insert()
        target = self._target()
        behind = self.sql.tokens[cursor.index - 1].end
        self.overwrites = read_options(self.sql, behind, cursor.token.start)
        values, without = self._partition() if cursor.at("PARTITION") else ({}, ())
        if cursor.at("IF") or cursor.at("REPLACE"):
            raise self.sql.unsupported(cursor.token.start, f"INSERT takes no {cursor.token.text}")
        by_name = cursor.accept("BY", "NAME")
        columns: list[str] = []
        if not by_name and self._at_columns():
            columns = cursor.names("the name of a column")
        source = self._source()
        if overwrites:
            return target, self._made(
                lambda: InsertOverwriteSpec(
                    source,
                    "static" if values else "table",
                    values,
                    tuple(columns),
                    by_name,
                    partition_columns=without,
                    schema_evolution=evolution,
                )
            )
        return target, self._made(
            lambda: InsertIntoSpec(
                source,
                values,
                tuple(columns),
                by_name,
                partition_columns=without,
                schema_evolution=evolution,
            )
        )

    def read_created_as(self) -> tuple[TableName, PartitionStatement]:
        """Target and statement of CREATE TABLE ... AS; errors are those of ``read``."""
        target, new, self.cursor.index = read_created_as(self.sql, self.views)
        source = self._source()
        if new.when_exists == "replace":
            return target, self._made(
                lambda: InsertOverwriteSpec(source, "table", allow_empty=True, new_table=new)
            )
        return target, self._made(lambda: InsertIntoSpec(source, new_table=new))

    def read_truncate(self) -> tuple[TableName, PartitionStatement]:
        """Target and statement; errors are those of ``StatementReader.read``."""
        self.cursor.expect("TABLE")
        target = self._target()
        values = self._valued() if self.cursor.at("PARTITION") else {}
        return target, self._made(lambda: TruncateTableSpec(values))

    def read_alter(self) -> tuple[TableName, PartitionStatement]:
        """Target and statement; errors are those of ``StatementReader.read``."""
        cursor = self.cursor
        cursor.expect("TABLE")
        target = self._target()
        if not cursor.at("DROP"):
            raise self._of_another_operator()
        cursor.expect("DROP")
        if_exists = cursor.accept("IF", "EXISTS")
        if any(cursor.at(*words) for words in _OF_DEFINITIONS):
            raise self._of_another_operator()
        partitions = [self._valued()]
        while cursor.accept_symbol(","):
            partitions.append(self._valued())
        cursor.accept("PURGE")
        return target, self._made(lambda: DropPartitionsSpec(tuple(partitions), if_exists))

    def _of_another_operator(self) -> Exception:
        return self.sql.unsupported(
            self.cursor.token.start,
            "of ALTER TABLE only DROP PARTITION is supported here",
            "Use AlterTableOperator, or alter_table(...) in a list of statements.",
        )

    def _kind_of_insert(self) -> tuple[bool, bool]:
        """Step over what stands before the target: whether the schema evolves, and OVERWRITE."""
        cursor = self.cursor
        evolution = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
        overwrites = cursor.accept("OVERWRITE")
        if not overwrites and not cursor.accept("INTO"):
            raise cursor.unexpected("INTO or OVERWRITE")
        for words in (("DIRECTORY",), ("LOCAL", "DIRECTORY")):
            if cursor.at(*words):
                raise self.sql.unsupported(cursor.token.start, "only tables are written")
        cursor.accept("TABLE")
        return evolution, overwrites

    def _target(self) -> TableName:
        parts = self.cursor.name("the target table")
        self.views.refuse_time_travel(self.cursor.index)
        return self.views.table(parts)

    def _at_columns(self) -> bool:
        """Whether a column list comes next, not a query in parentheses."""
        if not self.cursor.at_symbol("("):
            return False
        following, second = self.sql.tokens[self.cursor.index + 1 : self.cursor.index + 3]
        starts_query = following.is_word(*_QUERY_STARTS) and not second.is_symbol(",", ")")
        return not (starts_query or following.is_symbol("("))

    def _source(self) -> str:
        """The name of the source that the query becomes."""
        cursor = self.cursor
        if cursor.token.kind == "end":
            raise cursor.unexpected("a query")
        span = cursor.expression("a query")
        query = self.queries.query(span, self.views.scope, default_edits(self.sql, span))
        name = self.views.new_name(INSERT_SOURCE)
        self.views.add_query(name, query)
        return name

    def _partition(self) -> tuple[Values, tuple[str, ...]]:
        """The values of a PARTITION clause, and its columns without one."""
        cursor = self.cursor
        cursor.expect("PARTITION")
        opening = cursor.index
        cursor.expect_symbol("(")
        closing = self.sql.closing[opening]
        values: Values = {}
        without: list[str] = []
        while True:
            place = cursor.token.start
            parts = cursor.name("the name of a partition column")
            if len(parts) != 1:
                raise self.sql.error(place, "a partition column has a name of one part")
            (name,) = parts
            if name.name.lower() in [each.lower() for each in (*values, *without)]:
                raise self.sql.error(
                    place, f"{name.text} occurs more than once", "", ErrorCode.REQUEST_INVALID
                )
            if cursor.accept_symbol("=", "=="):
                values[name.name] = self.sql.slice(cursor.expression_before(closing, "a value"))
            else:
                without.append(name.name)
            if not cursor.accept_symbol(","):
                break
        cursor.expect_symbol(")")
        return values, tuple(without)

    def _valued(self) -> Values:
        """A PARTITION clause in which every column has a value."""
        place = self.cursor.token.start
        values, without = self._partition()
        if without:
            raise self.sql.error(
                place, f"{without[0]} has no value", f"Write {without[0]} = ..., or leave it out."
            )
        return values

    def _made(self, make: Callable[[], Made]) -> Made:
        """What ``make`` makes, with the place in the error if the contract refuses it."""
        try:
            return make()
        except RequestError as error:
            text = self.sql.at(self.start, error.message)
            raise error_of(error.code, text, error.remedy) from None
