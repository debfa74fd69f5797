"""The statements' frames: MERGE INTO, UPDATE and DELETE FROM as in Spark's grammar.

Those that work on whole partitions are read in ``inserts``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from airflow_provider_merge.sql.create_table import is_created_as
from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.former_states import read_former_state
from airflow_provider_merge.sql.inserts import PartitionStatementReader
from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.queries import NO_ALIAS, QueryText
from airflow_provider_merge.sql.settings import OverwritePolicy, read_settings
from airflow_provider_merge.sql.text import Span, SqlText
from airflow_provider_merge.sql.views import Views
from spark_jobs.contract.inserts import PartitionStatement
from spark_jobs.contract.request import TableName
from spark_jobs.contract.source_names import MERGE_SOURCE
from spark_jobs.contract.statements import (
    Action,
    Assignment,
    DeleteAction,
    DeleteSpec,
    InsertAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    RowStatement,
    UpdateAction,
    UpdateAllAction,
    UpdateSpec,
    When,
)
from spark_jobs.errors import ErrorCode, RequestError, error_of

# The view of what USING names; the builders of the operators call it so too.

Made = TypeVar("Made")


class StatementReader:
    """Reads one statement from ``sql`` and adds what it reads to ``views``."""

    def __init__(self, sql: SqlText, views: Views) -> None:
        self.sql = sql
        self.views = views
        self.cursor = Cursor(sql)
        self.queries = QueryText(views)
        self.overwrites: OverwritePolicy | None = None

    def read(self) -> tuple[TableName, RowStatement | PartitionStatement]:
        """The target and the statement.

        Raises:
            RequestError: SYNTAX_ERROR, or REQUEST_INVALID where the contract refuses the statement.
            AnalysisError: EXPRESSION_NOT_ALLOWED for a subquery where none can stand.
            NotSupportedError: a form that is understood but not built.
        """
        self.overwrites = read_settings(self.cursor)
        reads = self.cursor.at("WITH")
        if reads:
            self._common_table_expressions()
        start = self.cursor.token.start
        target: TableName
        statement: RowStatement | PartitionStatement
        if self.cursor.accept("MERGE"):
            target, statement = self._merge(start)
        elif self.cursor.accept("UPDATE"):
            target, statement = self._update(start)
        elif self.cursor.accept("DELETE"):
            target, statement = self._delete(start)
        elif self.cursor.accept("INSERT"):
            inserts = self._of_partitions(start)
            target, statement = inserts.read_insert()
            self.overwrites = inserts.overwrites or self.overwrites
        elif not reads and is_created_as(self.sql):
            target, statement = self._of_partitions(start).read_created_as()
        elif not reads and self.cursor.accept("TRUNCATE"):
            target, statement = self._of_partitions(start).read_truncate()
        elif not reads and self.cursor.accept("ALTER"):
            target, statement = self._of_partitions(start).read_alter()
        else:
            raise self._other_statement()
        self.cursor.expect_end()
        return target, statement

    def read_expression(self, what: str) -> str:
        """The text as a condition behind WHERE, or a value of UPDATE; raises like ``read``."""
        span = self.cursor.expression(f"a {what}")
        if self.cursor.token.kind != "end":
            raise self.cursor.unexpected(f"the end of the {what}")
        return self._expression(span)

    def _other_statement(self) -> Exception:
        token = self.cursor.token
        if token.kind == "end":
            return self.sql.error(token.start, "there is no statement")
        return self.sql.error(
            token.start,
            f"{token.text} does not start a statement that is accepted here",
            "Accepted are MERGE INTO, UPDATE, DELETE FROM and INSERT, also behind WITH, TRUNCATE "
            "TABLE, ALTER TABLE ... DROP PARTITION and CREATE TABLE ... AS; other CREATE TABLE by "
            "CreateTableOperator, other "
            "ALTER TABLE by AlterTableOperator, SELECT by QueryOperator.",
        )

    def _of_partitions(self, start: int) -> PartitionStatementReader:
        return PartitionStatementReader(self.cursor, self.queries, start)

    def _common_table_expressions(self) -> None:
        cursor, scope = self.cursor, self.views.scope
        self.queries.refuse_recursion(cursor.index)
        cursor.expect("WITH")
        names: set[str] = set()
        while True:
            first = cursor.index
            (name,) = self._one_part("the name of a common table expression")
            if name.name.lower() in names:
                raise self.sql.error(name.start, f"{name.text} is defined twice")
            names.add(name.name.lower())
            has_columns = cursor.at_symbol("(") and not self._is_body()
            if has_columns:
                cursor.names("the name of a column")
            cursor.accept("AS")
            opening = cursor.index
            query = self.queries.query(cursor.group(), scope)
            if has_columns:
                head = self.sql.slice(Span(first, opening + 1))
                query = f"WITH {head}{query}) SELECT * FROM {name.text}"
            view = self.views.query_name(name)
            self.views.add_query(view, query)
            scope[name.name.lower()] = view
            if not cursor.accept_symbol(","):
                return

    def _is_body(self) -> bool:
        """Whether the parenthesis behind a CTE's name holds its query, not its columns."""
        behind = self.sql.tokens[self.sql.closing[self.cursor.index] + 1]
        return not (behind.is_word("AS") or behind.is_symbol("("))

    def _one_part(self, what: str) -> tuple[Token, ...]:
        start = self.cursor.token.start
        parts = self.cursor.name(what)
        if len(parts) != 1:
            raise self.sql.error(start, f"expected {what}, found a name of {len(parts)} parts")
        return parts

    def _target(self, statement: str) -> tuple[TableName, str]:
        """The target and its alias."""
        parts = self.cursor.name("the target table")
        self.views.refuse_time_travel(self.cursor.index)
        alias = self._alias(parts[-1])
        if self.cursor.at_symbol("("):
            raise self.sql.error(
                self.cursor.token.start,
                f"the target of {statement} takes no column names behind its alias",
                "Name its columns as the table does.",
            )
        return self.views.table(parts), alias

    def _alias(self, name: Token | None) -> str:
        """The alias that comes next, else ``name``, else a generated one."""
        cursor = self.cursor
        explicit = cursor.accept("AS")
        if explicit or (cursor.token.is_name and not cursor.token.is_word(*NO_ALIAS)):
            (name,) = self._one_part("an alias")
        elif name is None and cursor.at_symbol("("):
            raise cursor.unexpected("an alias")
        alias = self.views.new_name(MERGE_SOURCE) if name is None else name.name
        self.views.aliases.add(alias.lower())
        return alias

    def _merge(self, start: int) -> tuple[TableName, MergeSpec]:
        cursor = self.cursor
        evolution = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
        cursor.expect("INTO")
        target, target_alias = self._target("MERGE")
        cursor.expect("USING")
        place = cursor.token.start
        source, source_alias = self._using()
        if source_alias.lower() == target_alias.lower():
            raise self.sql.error(
                place,
                f"target and source are both called {source_alias}",
                "Give one of them an alias: USING ... AS s.",
                ErrorCode.REQUEST_INVALID,
            )
        cursor.expect("ON")
        on = self._plain_expression(cursor.expression("a condition", "WHEN"))
        if not cursor.at("WHEN"):
            raise cursor.unexpected("WHEN MATCHED or WHEN NOT MATCHED")
        cases: list[MergeCase] = []
        while True:
            clause = cursor.token.start
            cases.append(self._clause())
            # Made for each clause, so that what the contract refuses has the clause's place.
            spec = self._made(
                clause,
                lambda: MergeSpec(
                    source=source,
                    on=on,
                    cases=tuple(cases),
                    target_alias=target_alias,
                    source_alias=source_alias,
                    schema_evolution=evolution,
                ),
                f"cases[{len(cases) - 1}]",
            )
            if not cursor.at("WHEN"):
                return target, spec

    def _using(self) -> tuple[str, str]:
        """The name of the source among the request's and its alias."""
        source, name = self._source()
        alias = self._alias(name)
        if self.cursor.at_symbol("("):
            # As in Trino's MERGE: Spark takes no names of columns here.
            columns = ", ".join(self.cursor.names("the name of a column"))
            renamed = self.views.new_name(MERGE_SOURCE)
            self.views.add_query(renamed, f"SELECT * FROM `{source}` AS `{source}` ({columns})")
            source = renamed
        return source, alias

    def _source(self) -> tuple[str, Token | None]:
        """The name of what USING names, and the last part of a table's name."""
        cursor = self.cursor
        if cursor.at_symbol("("):
            query = self.queries.query(cursor.group(), self.views.scope)
            made = self.views.new_name(MERGE_SOURCE)
            self.views.add_query(made, query)
            return made, None
        parts = cursor.name("a table, a named source or a query in parentheses")
        if cursor.at_symbol("("):
            raise self.sql.error(
                parts[0].start,
                "USING takes no function",
                f"Write it as a query: USING (SELECT * FROM {parts[-1].text}(...)).",
            )
        view, name = None, parts[0].name
        if len(parts) == 1 and name.lower() in self.views.scope:
            self.views.refuse_time_travel(cursor.index)
            view = self.views.known_view(self.views.scope, name)
        if view is None:
            table = self.views.table(parts)
            at, cursor.index = read_former_state(self.sql, cursor.index)
            view = self.views.new_name(MERGE_SOURCE)
            self.views.add_table(view, table, at)
        return view, parts[-1]

    def _clause(self) -> MergeCase:
        cursor = self.cursor
        start = cursor.token.start
        cursor.expect("WHEN")
        when = self._when()
        condition = None
        if cursor.accept("AND"):
            condition = self._plain_expression(cursor.expression("a condition", "THEN"))
        cursor.expect("THEN")
        action = self._action(when)
        return self._made(start, lambda: MergeCase(when, action, condition))

    def _when(self) -> When:
        cursor = self.cursor
        if cursor.accept("MATCHED"):
            return "matched"
        if not cursor.accept("NOT", "MATCHED"):
            raise cursor.unexpected("MATCHED or NOT MATCHED")
        if cursor.accept("BY", "SOURCE"):
            return "not_matched_by_source"
        if cursor.at("BY"):
            cursor.expect("BY", "TARGET")
        return "not_matched"

    def _action(self, when: When) -> Action:
        cursor = self.cursor
        start = cursor.token.start
        if when == "not_matched":
            cursor.expect("INSERT")
            return self._insert(start)
        if cursor.accept("DELETE"):
            return DeleteAction()
        if not cursor.accept("UPDATE"):
            raise cursor.unexpected("UPDATE or DELETE")
        cursor.expect("SET")
        if when == "matched" and cursor.accept_symbol("*"):
            return UpdateAllAction()
        return UpdateAction(self._assignments(self._plain_expression, "WHEN"))

    def _insert(self, start: int) -> Action:
        cursor = self.cursor
        if cursor.accept_symbol("*"):
            return InsertAllAction()
        columns: list[str] = []
        if cursor.at_symbol("("):
            columns = cursor.names("the name of a column")
        elif not cursor.at("VALUES"):
            raise cursor.unexpected("*, a column list or VALUES")
        cursor.expect("VALUES")
        values = [self._plain_expression(each) for each in cursor.expressions("a value")]
        return self._made(start, lambda: InsertAction(tuple(values), tuple(columns)))

    def _assignments(self, text_of: Callable[[Span], str], *stops: str) -> tuple[Assignment, ...]:
        cursor = self.cursor
        assignments = []
        while True:
            column = ".".join(part.text for part in cursor.name("the name of a column"))
            cursor.expect_symbol("=", "==")
            value = cursor.expression("a value", *stops, comma=True)
            assignments.append(Assignment(column, text_of(value)))
            if not cursor.accept_symbol(","):
                return tuple(assignments)

    def _update(self, start: int) -> tuple[TableName, UpdateSpec]:
        target, alias = self._target("UPDATE")
        self.cursor.expect("SET")
        assignments = self._assignments(self._expression, "WHERE")
        where = self._where()
        return target, self._made(start, lambda: UpdateSpec(alias, assignments, where))

    def _delete(self, start: int) -> tuple[TableName, DeleteSpec]:
        self.cursor.expect("FROM")
        target, alias = self._target("DELETE")
        where = self._where()
        return target, self._made(start, lambda: DeleteSpec(alias, where))

    def _where(self) -> str | None:
        if not self.cursor.accept("WHERE"):
            return None
        return self._expression(self.cursor.expression("a condition"))

    def _expression(self, span: Span) -> str:
        """The text of an expression, with views for the tables of its subqueries."""
        self.sql.require_operand(span.last)
        return self.queries.expression(span, self.views.scope)

    def _plain_expression(self, span: Span) -> str:
        """The text of an expression in which no subquery can stand."""
        for index in range(span.first, span.last):
            if index in self.sql.closing and self.sql.is_subquery(index):
                raise self.sql.error(
                    self.sql.tokens[index].start,
                    "a subquery can stand neither in ON nor in a condition or value of MERGE",
                    "Join it in the source: USING (SELECT ...).",
                    ErrorCode.EXPRESSION_NOT_ALLOWED,
                )
        self.sql.require_operand(span.last)
        return self.sql.slice(span)

    def _made(self, offset: int, make: Callable[[], Made], field: str = "") -> Made:
        """What ``make`` makes; if the contract refuses it, the error has the place in the text.

        ``field``: what the contract calls this place.
        """
        try:
            return make()
        except RequestError as error:
            problem = error.problem if error.places == (field,) else error.message
            raise error_of(error.code, self.sql.at(offset, problem), error.remedy) from None
