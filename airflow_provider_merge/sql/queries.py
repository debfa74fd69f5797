"""Table names inside queries, and the text with a view in place of each.

What the names stand for is told by their position: behind FROM, JOIN, TABLE, and behind a comma in
FROM. Expressions are never understood, only stepped over, so any that Spark knows may occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from airflow_provider_merge.sql.former_states import read_former_state
from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.text import FROM_FUNCTIONS, Edit, Span, SqlText
from airflow_provider_merge.sql.views import Scope, Views

# What a query begins with.
QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
_SET_OPERATORS = ("UNION", "EXCEPT", "MINUS", "SETMINUS", "INTERSECT")
_SELECTS = ("SELECT", "MAP", "REDUCE")
# What ends a FROM clause, so that a comma behind it separates no tables.
_AFTER_FROM = (
    *("WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET"),
    *("WINDOW", "SELECT", *_SET_OPERATORS),
)
# No alias: what else can follow a table's name.
NO_ALIAS = (
    *("WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET"),
    *("WINDOW", "SELECT", *_SET_OPERATORS, "JOIN", "CROSS"),
    *("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL", "LATERAL", "ON", "USING"),
    *("PIVOT", "UNPIVOT", "TABLESAMPLE", "WHEN", "SET", "WITH", "FROM"),
)


class _State(Enum):
    """Where in a query the scan is."""

    TABLE = auto()
    FROM = auto()
    VALUES = auto()
    OTHER = auto()


@dataclass(slots=True)
class QueryText:
    """Replaces the table names of queries by views; adds the views that it needs to ``views``."""

    views: Views
    _edits: list[Edit] = field(default_factory=list)

    @property
    def sql(self) -> SqlText:
        """The statement's text."""
        return self.views.sql

    def query(self, span: Span, scope: Scope, edits: Sequence[Edit] = ()) -> str:
        """The text of a query, with views for tables, and with ``edits``.

        Raises:
            RequestError: no query, or a name that is neither a table, a source nor a CTE.
            NotSupportedError: a recursive CTE, a former state by an expression.
        """
        self._require_query(span)
        return self._text(span, scope, True, edits)

    def expression(self, span: Span, scope: Scope) -> str:
        """The text of an expression, with views for the tables of its subqueries; raises alike."""
        return self._text(span, scope, False)

    def refuse_recursion(self, index: int) -> None:
        """Refuse RECURSIVE behind the WITH at ``index``; raises NotSupportedError."""
        recursive, name = self.sql.tokens[index + 1 : index + 3]
        if recursive.is_word("RECURSIVE") and name.is_name and not name.is_word("AS"):
            raise self.sql.unsupported(
                recursive.start, "recursive common table expressions are not supported"
            )

    def _text(self, span: Span, scope: Scope, is_query: bool, edits: Sequence[Edit] = ()) -> str:
        self._edits = list(edits)
        self._scan(span, scope, is_query, _State.OTHER)
        return self.sql.slice(span, self._edits)

    def _require_query(self, span: Span) -> None:
        first = span.first
        while first < span.last and self.sql.tokens[first].is_symbol("("):
            first += 1
        token = self.sql.tokens[first]
        if first >= span.last or not token.is_word(*QUERY_WORDS):
            raise self.sql.error(token.start, "expected a query in parentheses, such as SELECT ...")

    def _scan(self, span: Span, scope: Scope, is_query: bool, state: _State) -> None:
        tokens = self.sql.tokens
        index = span.first
        if is_query and tokens[index].is_word("WITH"):
            index, scope = self._nested_ctes(span, scope)
        start = index
        while index < span.last:
            if is_query and self._lacks_select(index, start, span.last):
                place = tokens[index].start
                self._edits.append(Edit(place, place, "SELECT * "))
            if index in self.sql.closing:
                closing = self.sql.closing[index]
                self._parentheses(index, closing, scope, state)
                state = _State.FROM if state is _State.TABLE else state
                index = closing + 1
            elif state is _State.TABLE:
                index, state = self._relation(index, scope)
            elif is_query and self._introduces_table(index, start):
                index, state = self._relation(index + 1, scope)[0], _State.OTHER
            else:
                state = self._next_state(index, state) if is_query else state
                index += 1

    def _lacks_select(self, index: int, start: int, last: int) -> bool:
        """Whether a query like ``FROM t WHERE …`` begins here, for which Spark wants a SELECT."""
        tokens = self.sql.tokens
        begins = index == start or self._follows_set_operator(index)
        if not begins or not tokens[index].is_word("FROM") or self._is_part(index):
            return False
        while index < last:
            token = tokens[index]
            if token.is_symbol("|>") or (token.is_word(*_SELECTS) and not self._is_part(index)):
                return False
            if token.is_word(*_SET_OPERATORS) and not self._is_part(index):
                return True
            index = self.sql.closing.get(index, index) + 1
        return True

    def _follows_set_operator(self, index: int) -> bool:
        tokens = self.sql.tokens
        quantified = tokens[index - 1].is_word("ALL", "DISTINCT")
        return tokens[index - 2 if quantified else index - 1].is_word(*_SET_OPERATORS)

    def _parentheses(self, opening: int, closing: int, scope: Scope, state: _State) -> None:
        inner = Span(opening + 1, closing)
        if inner.first == inner.last:
            return
        starts_query = self.sql.tokens[inner.first].is_word(*QUERY_WORDS)
        if state is _State.TABLE:
            self._scan(inner, scope, True, _State.OTHER if starts_query else _State.TABLE)
            return
        before = self.sql.tokens[opening - 1] if opening else None
        if before is not None and before.is_word(*FROM_FUNCTIONS):
            starts_query = False
        elif not starts_query:
            starts_query = self._starts_query(inner)
        self._scan(inner, scope, starts_query, _State.OTHER)

    def _starts_query(self, span: Span) -> bool:
        first = span.first
        while first < span.last and self.sql.tokens[first].is_symbol("("):
            first += 1
        return first < span.last and self.sql.tokens[first].is_word(*QUERY_WORDS)

    def _next_state(self, index: int, state: _State) -> _State:
        """The state behind a token outside of parentheses."""
        tokens = self.sql.tokens
        token = tokens[index]
        if token.is_symbol("|>"):
            return _State.OTHER
        if token.is_symbol(","):
            return _State.TABLE if state is _State.FROM else state
        if token.kind != "word" or self._is_part(index):
            return _State.FROM if state is _State.VALUES and token.kind == "quoted" else state
        if token.is_word("JOIN") or (token.is_word("FROM") and not self._is_distinct_from(index)):
            return _State.TABLE
        lateral_view = token.is_word("LATERAL") and tokens[index + 1].is_word("VIEW")
        if token.is_word(*_AFTER_FROM) or lateral_view:
            return _State.OTHER
        if state is _State.VALUES and (token.is_word("AS") or tokens[index - 1].is_symbol(")")):
            return _State.FROM
        return state

    def _is_part(self, index: int) -> bool:
        """Whether the token is a part of a dotted name."""
        tokens = self.sql.tokens
        before = index > 0 and tokens[index - 1].is_symbol(".")
        return before or tokens[index + 1].is_symbol(".")

    def _is_distinct_from(self, index: int) -> bool:
        """Whether this is the FROM of IS [NOT] DISTINCT FROM."""
        before = self.sql.tokens[max(index - 2, 0) : index]
        return len(before) == 2 and before[1].is_word("DISTINCT") and before[0].is_word("IS", "NOT")

    def _introduces_table(self, index: int, start: int) -> bool:
        """Whether this is the TABLE of a query like ``TABLE db.t``."""
        token, following = self.sql.tokens[index : index + 2]
        first = index == start or self._follows_set_operator(index)
        return first and token.is_word("TABLE") and following.is_name

    def _relation(self, index: int, scope: Scope) -> tuple[int, _State]:
        """Step over the start of a table, function or VALUES in FROM."""
        tokens = self.sql.tokens
        token = tokens[index]
        if token.is_word("LATERAL"):
            return index + 1, _State.TABLE
        if token.is_word("VALUES") and not tokens[index + 1].is_symbol("."):
            return index + 1, _State.VALUES
        if not token.is_name or (token.is_word(*_AFTER_FROM, "FROM") and not self._is_part(index)):
            raise self.sql.error(token.start, "expected a table or a query")
        first = index
        index += 1
        while tokens[index].is_symbol(".") and tokens[index + 1].is_name:
            index += 2
        if tokens[index].is_symbol("("):
            self._refuse_identifier_clause(token)
        else:
            index = self._reference(Span(first, index), scope)
        return index, _State.FROM

    def _refuse_identifier_clause(self, token: Token) -> None:
        if token.is_word("IDENTIFIER"):
            raise self.sql.unsupported(
                token.start, "IDENTIFIER(...) names a table only at run time", "Write its name."
            )

    def _reference(self, span: Span, scope: Scope) -> int:
        """Put the view of a table, source or CTE in the place of its name; the index behind."""
        parts = self.sql.tokens[span.first : span.last : 2]
        name, end = parts[-1].name, span.last
        if len(parts) == 1 and name.lower() in scope:
            self.views.refuse_time_travel(end)
            view = self.views.known_view(scope, name)
            if view is None or view.lower() == name.lower():
                return end
        else:
            at, end = read_former_state(self.sql, end)
            view = self.views.view_of(self.views.table(parts), at)
        self._edits.append(Edit(parts[0].start, self.sql.tokens[end - 1].end, view))
        if not self.sql.tokens[span.first - 1].is_word("TABLE"):
            self._alias(parts[-1], end)
        return end

    def _alias(self, last_part: Token, index: int) -> None:
        """Call the view by the table's last name, unless the query gives it an alias."""
        tokens = self.sql.tokens
        if tokens[index].is_word("TABLESAMPLE") and index + 1 in self.sql.closing:
            index = self.sql.closing[index + 1] + 1
            if tokens[index].is_word("REPEATABLE") and index + 1 in self.sql.closing:
                index = self.sql.closing[index + 1] + 1
        token = tokens[index]
        if token.is_word("AS") or (token.is_name and not token.is_word(*NO_ALIAS)):
            named = tokens[index + 1] if token.is_word("AS") else token
            self.views.aliases.add(named.name.lower())
            return
        self.views.aliases.add(last_part.name.lower())
        end = tokens[index - 1].end
        self._edits.append(Edit(end, end, f" AS {last_part.text}"))

    def _nested_ctes(self, span: Span, scope: Scope) -> tuple[int, Scope]:
        """Step over WITH … inside a query; the scope with its names."""
        self.refuse_recursion(span.first)
        tokens, closing = self.sql.tokens, self.sql.closing
        scope = dict(scope)
        index = span.first + 1
        while tokens[index].is_name:
            name = tokens[index]
            index += 1
            if index in closing and not self._is_body(index):
                index = closing[index] + 1
            if tokens[index].is_word("AS"):
                index += 1
            if index not in closing:
                raise self.sql.error(tokens[index].start, "expected the query of WITH")
            self._scan(Span(index + 1, closing[index]), scope, True, _State.OTHER)
            scope[name.name.lower()] = None
            index = closing[index] + 1
            if not tokens[index].is_symbol(","):
                break
            index += 1
        return index, scope

    def _is_body(self, opening: int) -> bool:
        """Whether the parenthesis behind a CTE's name holds its query, not its columns."""
        behind = self.sql.tokens[self.sql.closing[opening] + 1]
        return not (behind.is_word("AS") or behind.is_symbol("("))
