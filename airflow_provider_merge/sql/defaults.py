"""DEFAULT in the rows of INSERT: as a cell of VALUES, or as a column of SELECT.

The rows become a Spark view, which knows no column of the target. So NULL stands in the place of
DEFAULT, and names of columns say so to the job (``contract.inserts``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.text import Edit, Span, SqlText
from spark_jobs.contract.inserts import DEFAULT_AS, DEFAULT_OF

_SEVERAL = ("UNION", "EXCEPT", "MINUS", "SETMINUS", "INTERSECT")
# What ends the columns of a SELECT, and is no alias of the last one.
_AFTER_COLUMNS = (
    *("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT"),
    *("OFFSET", "WINDOW", "LATERAL", "QUALIFY", *_SEVERAL),
)
_REMEDY = "Leave the column out, and name the others: INSERT INTO t (a, b) ..."


def default_edits(sql: SqlText, span: Span) -> list[Edit]:
    """What makes a query for INSERT free of DEFAULT; nothing where there is none.

    Raises:
        NotSupportedError: DEFAULT in one of several queries, or in VALUES that go on.
    """
    while span.first < span.last and sql.closing.get(span.first) == span.last - 1:
        span = Span(span.first + 1, span.last - 1)
    if sql.tokens[span.first].is_word("VALUES"):
        return _of_values(sql, span)
    return _of_select(sql, span)


def _of_select(sql: SqlText, span: Span) -> list[Edit]:
    tokens = sql.tokens
    outside = list(_outside(sql, span))
    items = [each for each in _items(sql, outside) if tokens[each].is_word("DEFAULT")]
    aliases = {each: _alias(sql, each + 1, span.last) for each in items}
    default_items = [each for each in items if _ends(sql, aliases[each] or each, span.last)]
    if default_items and any(
        tokens[each].is_word(*_SEVERAL) or _is_pipe(tokens[each]) for each in outside
    ):
        problem = "DEFAULT is not supported in one of several queries"
        raise sql.unsupported(tokens[default_items[0]].start, problem, _REMEDY)
    edits = []
    for number, index in enumerate(default_items, start=1):
        alias = aliases[index]
        name = f"{DEFAULT_AS}{number if alias is None else tokens[alias].name}"
        end = tokens[alias or index].end
        edits.append(Edit(tokens[index].start, end, f"NULL AS `{name.replace('`', '``')}`"))
    return edits


def _alias(sql: SqlText, index: int, last: int) -> int | None:
    """The alias that comes next, if one does."""
    index += index < last and sql.tokens[index].is_word("AS")
    token = sql.tokens[index]
    is_alias = index < last and token.is_name and not token.is_word(*_AFTER_COLUMNS)
    return index if is_alias else None


def _ends(sql: SqlText, index: int, last: int) -> bool:
    """Whether a column of a SELECT ends with the token at ``index``."""
    following = sql.tokens[index + 1]
    ends = following.is_symbol(",", "|>") or following.is_word(*_AFTER_COLUMNS)
    return index + 1 >= last or ends


def _outside(sql: SqlText, span: Span) -> Iterator[int]:
    """The tokens that no parentheses hold, and the parentheses that open."""
    index = span.first
    while index < span.last:
        yield index
        index = sql.closing.get(index, index) + 1


def _items(sql: SqlText, outside: list[int]) -> Iterator[int]:
    """Where each column of a SELECT begins."""
    in_columns = begins = False
    for index in outside:
        token = sql.tokens[index]
        if token.is_word("SELECT"):
            in_columns = begins = True
        elif in_columns and token.is_word(*_AFTER_COLUMNS):
            in_columns = begins = False
        elif in_columns and token.is_symbol(","):
            begins = True
        elif begins and not token.is_word("ALL", "DISTINCT"):
            yield index
            begins = False


def _is_pipe(token: Token) -> bool:
    return token.is_symbol("|>")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of VALUES; ``opening`` is the index of its parenthesis, None where it has none."""

    cells: tuple[Span, ...]
    opening: int | None


def _of_values(sql: SqlText, span: Span) -> list[Edit]:
    rows, behind = _rows(sql, span)
    places = sorted({n for row in rows for n, c in enumerate(row.cells, 1) if _is_default(sql, c)})
    if not places:
        return []
    edits = [edit for row in rows for edit in _row_edits(sql, row, places)]
    names = [f"{DEFAULT_OF}{place}" for place in places]
    columns, behind = _columns(sql, span, behind)
    if behind < span.last:
        problem = "DEFAULT is not supported in VALUES with further clauses"
        raise sql.unsupported(sql.tokens[behind].start, problem, _REMEDY)
    if columns is not None:
        place = sql.tokens[sql.closing[columns]].start
        return [*edits, Edit(place, place, "".join(f", {name}" for name in names))]
    width = len(rows[0].cells)
    given = [f"col{number}" for number in range(1, width + 1)]
    flags = [f"col{width + n} AS {name}" for n, name in enumerate(names, start=1)]
    start, end = sql.tokens[span.first].start, sql.tokens[span.last - 1].end
    head = f"SELECT {', '.join([*given, *flags])} FROM ("
    return [Edit(start, start, head), *edits, Edit(end, end, ")")]


def _rows(sql: SqlText, span: Span) -> tuple[list[_Row], int]:
    """The rows, and the index behind them."""
    rows, index = [], span.first + 1
    while index < span.last:
        if sql.tokens[index].is_symbol("("):
            closing = sql.closing[index]
            rows.append(_Row(tuple(_cells(sql, Span(index + 1, closing))), index))
            index = closing + 1
        else:
            end = sql.expression_end(Span(index, span.last), ("AS",), comma=True)
            rows.append(_Row((Span(index, end),), None))
            index = end
        if index >= span.last or not sql.tokens[index].is_symbol(","):
            break
        index += 1
    return rows, index


def _cells(sql: SqlText, span: Span) -> Iterator[Span]:
    index = span.first
    while index < span.last:
        end = sql.expression_end(Span(index, span.last), comma=True)
        yield Span(index, end)
        index = end + 1


def _is_default(sql: SqlText, cell: Span) -> bool:
    return cell.last - cell.first == 1 and sql.tokens[cell.first].is_word("DEFAULT")


def _row_edits(sql: SqlText, row: _Row, places: list[int]) -> Iterator[Edit]:
    """NULL for each DEFAULT, and behind the cells whether there was one at each of the places."""
    defaults = {n for n, cell in enumerate(row.cells, 1) if _is_default(sql, cell)}
    for number in defaults:
        token = sql.tokens[row.cells[number - 1].first]
        yield Edit(token.start, token.end, "NULL")
    flags = "".join(f", {str(place in defaults).lower()}" for place in places)
    if row.opening is not None:
        place = sql.tokens[sql.closing[row.opening]].start
        yield Edit(place, place, flags)
        return
    (cell,) = row.cells
    start, end = sql.tokens[cell.first].start, sql.tokens[cell.last - 1].end
    yield Edit(start, start, "(")
    yield Edit(end, end, f"{flags})")


def _columns(sql: SqlText, span: Span, index: int) -> tuple[int | None, int]:
    """The parenthesis of the columns that an alias behind VALUES names, and the index behind."""
    tokens = sql.tokens
    if index < span.last and tokens[index].is_word("AS"):
        index += 1
    elif not (index < span.last and tokens[index].is_name and not _ends_values(tokens[index])):
        return None, index
    index += 1
    if index < span.last and tokens[index].is_symbol("("):
        return index, sql.closing[index] + 1
    return None, index


def _ends_values(token: Token) -> bool:
    return token.is_word(*_AFTER_COLUMNS)
