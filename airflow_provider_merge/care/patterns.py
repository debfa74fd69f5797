"""Patterns of tables: ``shop.*``, ``*.orders``, ``lake.shop.*``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import BRANCH_MARK

_WILDCARDS = frozenset("*?[")
_REMEDY = "Write database.table with * and ?, such as shop.* or *.orders."


@dataclass(frozen=True, slots=True)
class Pattern:
    """``text``, whose part before its last dot is for databases, and the rest for tables.

    Its first part may be a catalog's name, or belong to a namespace of several levels.
    """

    text: str

    @property
    def named_catalog(self) -> str:
        """The first of three parts or more, if it has no wildcard: perhaps a catalog."""
        first, *others = self.text.split(".")
        return first if len(others) > 1 and not _WILDCARDS.intersection(first) else ""

    def without_catalog(self) -> Pattern:
        """The rest of the pattern."""
        return Pattern(self.text.partition(".")[2])

    def as_name(self) -> TableName:
        """The pattern as the name of a table, for errors."""
        database, _, table = self.without_catalog().text.rpartition(".")
        return TableName(database, table, self.named_catalog)

    def fits(self, name: TableName) -> bool:
        """Whether a table is meant; letters count by their case."""
        database, _, table = self.text.rpartition(".")
        return fnmatchcase(name.database, database) and fnmatchcase(name.table, table)


def patterns(field: str, value: Any) -> list[Pattern]:
    """One pattern, or a list of them.

    Raises:
        RequestError: REQUEST_INVALID, naming the pattern.
    """
    if isinstance(value, str):
        return [_pattern(field, value)]
    if not isinstance(value, Sequence):
        problem = f"expected text or a list of texts, found {type(value).__name__}"
        raise invalid(field, problem, _REMEDY)
    return [_pattern(f"{field}[{index}]", each) for index, each in enumerate(value)]


def chosen(
    names: Iterable[TableName], wanted: Sequence[Pattern], excluded: Sequence[Pattern]
) -> list[TableName]:
    """The tables that a pattern fits, and no excluded one."""
    return [
        name
        for name in names
        if any(each.fits(name) for each in wanted) and not any(each.fits(name) for each in excluded)
    ]


def _pattern(field: str, text: Any) -> Pattern:
    if not isinstance(text, str):
        raise invalid(field, f"expected text, found {type(text).__name__}", _REMEDY)
    parts = text.strip().split(".")
    if len(parts) < 2 or not all(parts) or "/" in text or "`" in text:
        raise invalid(field, f"{text!r} is not a pattern of tables", _REMEDY)
    if BRANCH_MARK in text:
        raise invalid(field, f"{text!r} names a branch", "Name the table: branches are its own.")
    return Pattern(text.strip())
