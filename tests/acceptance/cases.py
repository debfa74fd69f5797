"""Acceptance cases as a file tells them: one JSON object per line.

A field that is not known here is an error: nothing that a case says is silently left out.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Facts about a case that do not decide what it does.
_DESCRIPTIVE = {"tags", "portability"}
# Values are always stored by ANSI casts; the mode is one of INSERT OVERWRITE.
_SETTINGS = {
    "storeAssignmentPolicy": ("ansi",),
    "partition_overwrite_mode": ("static", "dynamic"),
}
CATEGORIES: Mapping[str, frozenset[str]] = {
    "cardinality": frozenset({"MERGE_TARGET_ROW_MULTIPLE_MATCHES"}),
    "unresolved-or-missing-column": frozenset({"COLUMN_NOT_FOUND"}),
    "ambiguous-column": frozenset({"AMBIGUOUS_REFERENCE"}),
    "conflicting-assignments": frozenset({"DUPLICATE_ASSIGNMENT"}),
    "clause-order": frozenset({"REQUEST_INVALID", "SYNTAX_ERROR"}),
    "aggregate": frozenset({"EXPRESSION_NOT_ALLOWED"}),
}


class BadCaseError(Exception):
    """The file of cases is not one, or says what this runner does not know."""


@dataclass(frozen=True)
class TableCase:
    """A table or a view that a case starts from; ``columns``: (name, Spark SQL type)."""

    table: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Sequence[Any], ...]
    partitioned_by: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()
    kind: str = "table"
    props: Mapping[str, str] = field(default_factory=dict)
    not_null: tuple[str, ...] = ()
    query: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("table", "view"):
            raise BadCaseError(f"kind {self.kind!r} of {self.table} is not known")


@dataclass(frozen=True)
class Expected:
    """Rows (or, with ``select``, the rows of that projection), or the category of an error."""

    rows: tuple[Sequence[Any], ...] | None = None
    category: str | None = None
    select: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.rows is None) == (self.category is None):
            raise BadCaseError("expected has either rows or a category")
        if self.category is not None and self.category not in CATEGORIES:
            raise BadCaseError(f"category {self.category!r} is not known")


@dataclass(frozen=True)
class Case:
    """A statement, its tables and what it does; ``cardinality_error_in``: see ``rules``."""

    id: str
    create: tuple[TableCase, ...]
    statement: str
    expected: Expected
    settings: Mapping[str, str] = field(default_factory=dict)
    update_count: int | None = None
    cardinality_error_in: Mapping[str, bool] | None = None

    def __post_init__(self) -> None:
        for name, value in self.settings.items():
            if value not in _SETTINGS.get(name, ()):
                raise BadCaseError(f"setting {name} = {value} is not known")


def load_cases(path: Path) -> list[Case]:
    """The cases of a file, in its order.

    Raises:
        BadCaseError: a line is no case; the number of the line is named.
    """
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            cases.append(_case(json.loads(line)))
        except (ValueError, TypeError, KeyError, BadCaseError) as error:
            raise BadCaseError(f"{path}, line {number}: {error}") from error
    return cases


def _case(document: dict[str, Any]) -> Case:
    known = {name: value for name, value in document.items() if name not in _DESCRIPTIVE}
    known["statement"] = known.pop("statement_spark", known["statement"])
    expected = {name: value for name, value in known["expected"].items() if name != "order_by"}
    known["expected"] = _build(Expected, expected)
    known["create"] = tuple(_build(TableCase, table) for table in known["create"])
    return _build(Case, known)


def _build(kind: type, document: Mapping[str, Any]) -> Any:
    names = {each.name for each in dataclasses.fields(kind)}
    if unknown := sorted(set(document) - names):
        raise BadCaseError(f"{kind.__name__}: {', '.join(unknown)} is not known")
    return kind(**{n: tuple(v) if isinstance(v, list) else v for n, v in document.items()})
