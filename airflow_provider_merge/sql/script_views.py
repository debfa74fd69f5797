"""Temporary views in a text of several statements: each is a source of the statements behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.definitions import DefinitionReader
from airflow_provider_merge.sql.parser import ParsedQuery, parse_view
from airflow_provider_merge.sql.script_settings import same_zone
from airflow_provider_merge.sql.text import SqlText
from spark_jobs.contract.request import TableName
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.errors import ErrorCode

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEMPORARY: Final = ("TEMPORARY", "TEMP")


@dataclass(frozen=True, slots=True)
class _View:
    """A view; ``columns``: the names that it gives to those of its query."""

    name: str
    query: ParsedQuery
    columns: tuple[str, ...]
    time_zone: str | None


@dataclass(slots=True)
class ScriptViews:
    """The views that there are so far, over tables, other views and the given ``sources``.

    A view reads another one as it is when a statement reads it, as in Spark. ``used`` are the given
    sources that were read.
    """

    sources: Mapping[str, Any]
    used: set[str] = field(default_factory=set)
    _views: dict[str, _View] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that a statement can read like tables."""
        return (*self.sources, *(each.name for each in self._views.values()))

    def has(self, name: str) -> bool:
        """Whether there is a view of this name."""
        return name.lower() in self._views

    def defines(self, cursor: Cursor) -> bool:
        """Whether CREATE [OR REPLACE] TEMPORARY VIEW comes next."""
        words = (("CREATE",), ("CREATE", "OR", "REPLACE"))
        return any(cursor.at(*each, kind, "VIEW") for each in words for kind in _TEMPORARY)

    def define(self, sql: SqlText, database: str | None, time_zone: str | None) -> None:
        """Read a whole CREATE TEMPORARY VIEW.

        Raises:
            RequestError: SYNTAX_ERROR, or REQUEST_INVALID: the name is taken, or the view would
                read itself.
            NotSupportedError: a part that is understood but not built.
        """
        reader = DefinitionReader(sql)
        cursor = reader.cursor
        cursor.expect("CREATE")
        replaces = cursor.accept("OR", "REPLACE")
        cursor.index += 2
        place = cursor.token.start
        name = self._new_name(reader)
        known = self._views.get(name.lower())
        columns = _columns(reader)
        _step_over_comments(reader)
        if cursor.at("USING"):
            raise sql.unsupported(
                cursor.token.start,
                "a view over files is not supported",
                "Give the files to the task: sources={'name': file_source(...)}.",
            )
        cursor.expect("AS")
        if known is not None and not replaces:
            raise sql.error(
                place,
                f"there is a view {known.name} already",
                "Write CREATE OR REPLACE TEMPORARY VIEW.",
                ErrorCode.REQUEST_INVALID,
            )
        query = parse_view(sql, cursor.index, self.names, database, f"{name}__")
        self._refuse_circle(sql, place, name, query)
        self._views[name.lower()] = _View(name, query, columns, time_zone)

    def drop(self, cursor: Cursor) -> None:
        """Read what stands behind DROP VIEW.

        Raises:
            RequestError: REQUEST_INVALID: there is no such view, or another one reads it.
        """
        if_exists = cursor.accept("IF", "EXISTS")
        token = cursor.token
        parts = cursor.name("the name of a view")
        name = parts[-1].name.lower()
        if len(parts) > 1 or (name not in self._views and not if_exists):
            raise cursor.sql.unsupported(
                token.start,
                f"{token.text} is no temporary view of this text, and others are not dropped here",
                "Leave it out.",
            )
        for view in self._views.values():
            if name in {read.lower() for read in view.query.read}:
                raise cursor.sql.error(
                    token.start,
                    f"the view {view.name} reads {token.text}",
                    f"Drop {view.name} first.",
                    ErrorCode.REQUEST_INVALID,
                )
        self._views.pop(name, None)

    def sources_of(
        self, sql: SqlText, read: Iterable[str], time_zone: str | None
    ) -> dict[str, Any]:
        """The sources of a statement that reads these names, each behind those that it reads.

        Raises:
            NotSupportedError: a view was made in another time zone.
        """
        sources: dict[str, Any] = {}
        for name in sorted(read):
            self._add(sql, name, time_zone, sources)
        return sources

    def _add(self, sql: SqlText, name: str, time_zone: str | None, found: dict[str, Any]) -> None:
        view = self._views.get(name.lower())
        if name in found:
            return
        if view is None:
            self.used.add(name)
            found[name] = self.sources[name]
            return
        same_zone(sql, view.name, view.time_zone, time_zone)
        for each in sorted(view.query.read):
            self._add(sql, each, time_zone, found)
        found[view.name] = _source(view)

    def _new_name(self, reader: DefinitionReader) -> str:
        sql, place = reader.sql, reader.cursor.token.start
        name = reader.name()
        if not _NAME.fullmatch(name):
            raise sql.error(
                place,
                f"{name!r} cannot be the name of a view here",
                "Use letters, digits and _, not starting with a digit.",
                ErrorCode.REQUEST_INVALID,
            )
        if name.lower() in {each.lower() for each in self.sources}:
            raise sql.error(
                place,
                f"{name} is the name of a source of the task",
                "Give the view another name, or leave the source out.",
                ErrorCode.REQUEST_INVALID,
            )
        return name

    def _refuse_circle(self, sql: SqlText, place: int, name: str, query: ParsedQuery) -> None:
        if name.lower() in self._reached(query):
            raise sql.error(
                place, f"the view {name} would read itself", "", ErrorCode.REQUEST_INVALID
            )

    def _reached(self, query: ParsedQuery) -> Iterator[str]:
        for name in query.read:
            yield name.lower()
            if name.lower() in self._views:
                yield from self._reached(self._views[name.lower()].query)


def _columns(reader: DefinitionReader) -> tuple[str, ...]:
    """The names in parentheses behind that of the view, of which each may have a comment."""
    cursor = reader.cursor
    if not cursor.accept_symbol("("):
        return ()
    names = []
    while True:
        names.append(reader.name())
        if cursor.accept("COMMENT"):
            reader.string()
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return tuple(names)


def _step_over_comments(reader: DefinitionReader) -> None:
    while True:
        if reader.cursor.accept("COMMENT"):
            reader.string()
        elif reader.cursor.accept("TBLPROPERTIES"):
            reader.properties()
        else:
            return


def _source(view: _View) -> dict[str, Any]:
    query = view.query.query
    if view.columns:
        names = ", ".join(map(quote, view.columns))
        query = f"SELECT * FROM ({query}\n) AS {quote(view.name)} ({names})"
    tables = {
        name: {"kind": "table", "table": full_name(each.table), **_state(each.at)}
        for name, each in view.query.tables.items()
    }
    return {"kind": "sql", "query": query, "sources": tables}


def _state(at: TableVersion | None) -> dict[str, str]:
    return {} if at is None else {at.field: str(getattr(at, at.field))}


def full_name(table: TableName) -> str:
    """The name in backticks, with the catalog if it has one."""
    parts = (table.catalog, table.database, table.table)
    return ".".join(quote(each) for each in parts if each)
