"""The sources that a statement needs beside those that the operator was given.

In the job each source is a Spark temporary view of its name, which takes the place of the table in
the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from airflow_provider_merge.sql.former_states import names_former_state
from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.text import SqlText
from spark_jobs.contract.request import Source, SqlSource, TableName, TableSource
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.errors import ErrorCode, RequestError

_NO_NAME_CHARACTER = re.compile(r"[^A-Za-z0-9_]+")
_VIEW_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The names that a query can read beside tables, in lower case, and the view of each; None: the
# query itself defines it.
Scope = dict[str, str | None]


class Views:
    """Collects the sources of one statement, in the order in which they build on each other.

    ``read`` are those of the given names that it reads; ``bare`` the names of tables that it gives
    without a database, in lower case. ``prefix`` begins the names of the views over tables.
    """

    def __init__(
        self,
        sql: SqlText,
        source_names: Iterable[str],
        database: str | None,
        prefix: str = "",
    ) -> None:
        self.sql = sql
        self.sources: list[Source] = []
        self.scope: Scope = {name.lower(): name for name in source_names}
        self.tables: set[tuple[str, str]] = set()
        self.read: set[str] = set()
        self.bare: set[str] = set()
        self.aliases: set[str] = set()
        # Of the names with three parts.
        self.catalog = ""
        self._given = tuple(self.scope.values())
        self._database = database
        self._prefix = prefix
        self._views: dict[tuple[TableName, TableVersion | None], str] = {}
        self._taken = {token.name.lower() for token in sql.tokens if token.is_name}
        self._taken.update(self.scope)

    def known_view(self, scope: Scope, name: str) -> str | None:
        """What ``scope`` has for a name of one part that is in it; notes that it is read."""
        view = scope[name.lower()]
        if view is not None and view in self._given:
            self.read.add(view)
        return view

    def add_query(self, name: str, query: str) -> None:
        """A view over a query."""
        self.sources.append(SqlSource(name, query))

    def add_table(self, name: str, table: TableName, at: TableVersion | None = None) -> None:
        """A view over a table, perhaps at a former state."""
        self.sources.append(TableSource(name, table, at))

    def view_of(self, table: TableName, at: TableVersion | None = None) -> str:
        """The name of the one view over a table's state that the statement's queries read."""
        key = table, at
        if key not in self._views:
            self._views[key] = self.new_name(f"{self._prefix}{table.database}__{table.table}")
            self.add_table(self._views[key], table, at)
        elif table.catalog:
            # The name without a catalog came first, and this one is to be checked.
            source = TableSource(self._views[key], table, at)
            self.sources[self.sources.index(source)] = source
        return self._views[key]

    def new_name(self, wanted: str) -> str:
        """``wanted`` as a name that occurs nowhere in the text, or the next free one."""
        plain = _NO_NAME_CHARACTER.sub("_", wanted)
        base = plain if _VIEW_NAME.fullmatch(plain) else f"_{plain}"
        name, number = base, 1
        while name.lower() in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name.lower())
        return name

    def query_name(self, token: Token) -> str:
        """The view of the query that the statement calls ``token``: of this name, if it can be."""
        if _VIEW_NAME.fullmatch(token.name) and token.name.lower() not in self.scope:
            return token.name
        return self.new_name(token.name)

    def table(self, parts: Sequence[Token]) -> TableName:
        """The table behind a name of one to three parts.

        Raises:
            RequestError: REQUEST_INVALID, when no table has such a name, or there is no database.
        """
        start = parts[0].start
        if len(parts) > 3:
            raise self.sql.error(
                start,
                f"{_dotted(parts)} has {len(parts)} parts",
                "Write database.table, or catalog.database.table; a namespace of several levels "
                "in one pair of backticks.",
                ErrorCode.REQUEST_INVALID,
            )
        if len(parts) == 1 and not self._database:
            raise self._no_database(parts[0])
        if len(parts) == 1:
            self.bare.add(parts[0].name.lower())
        database = parts[-2].name if len(parts) > 1 else self._database or ""
        catalog = self._one_catalog(parts[0]) if len(parts) == 3 else ""
        try:
            table = TableName(database, parts[-1].name, catalog)
        except RequestError as error:
            remedy = "Files are read through a source: sources={'name': file_source(...)}."
            raise self.sql.error(start, error.message, remedy, error.code) from None
        self.tables.add((table.database.lower(), table.table.lower()))
        return table

    def _one_catalog(self, token: Token) -> str:
        """The name of a catalog, which is the one that the text has named before, if it has."""
        if self.catalog not in ("", token.name):
            raise self.sql.error(
                token.start,
                f"{token.text} is another catalog than {self.catalog}, and a statement has one",
                "Read tables of other catalogs through a source.",
                ErrorCode.REQUEST_INVALID,
            )
        self.catalog = token.name
        return token.name

    def refuse_time_travel(self, index: int) -> None:
        """Refuse a version or time behind the name of what ends before ``index``: no source.

        Raises:
            NotSupportedError: there is one.
        """
        if names_former_state(self.sql, index):
            raise self.sql.unsupported(
                self.sql.tokens[index].start,
                "only tables that are read have former states, not targets, queries and sources",
                "Name the state where the table itself stands; as a source: "
                "table_source('db.t', snapshot=...).",
            )

    def _no_database(self, token: Token) -> Exception:
        known = ", ".join(str(name) for name in self._given) or "none"
        return self.sql.error(
            token.start,
            f"{token.text} is neither a common table expression nor one of the named sources "
            f"({known})",
            "For a table write database.table, or set database; other data belongs into sources.",
            ErrorCode.REQUEST_INVALID,
        )


def _dotted(parts: Sequence[Token]) -> str:
    return ".".join(part.text for part in parts)
