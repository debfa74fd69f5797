"""Acceptance cases as a file tells them: one JSON object per line.

A field that is not known here is a problem of its case, which then fails: nothing that a case says
is silently left out, and no case keeps the others from being run.
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
# Values are always stored by ANSI casts: what comes of another policy is told by ``report``. The
# mode is one of INSERT OVERWRITE.
POLICY = "storeAssignmentPolicy"
EVOLUTION = "schema_evolution"
_SETTINGS: Mapping[str, tuple[Any, ...]] = {
    POLICY: ("ansi", "legacy", "strict"),
    "partition_overwrite_mode": ("static", "dynamic"),
    EVOLUTION: (True, False),
}
CATEGORIES: Mapping[str, frozenset[str]] = {
    "cardinality": frozenset({"MERGE_TARGET_ROW_MULTIPLE_MATCHES"}),
    "unresolved-or-missing-column": frozenset({"COLUMN_NOT_FOUND"}),
    "ambiguous-column": frozenset({"AMBIGUOUS_REFERENCE"}),
    "conflicting-assignments": frozenset({"DUPLICATE_ASSIGNMENT"}),
    "clause-order": frozenset({"REQUEST_INVALID", "SYNTAX_ERROR"}),
    "aggregate": frozenset({"EXPRESSION_NOT_ALLOWED"}),
    "type-mismatch": frozenset({"TYPE_MISMATCH"}),
}
_EITHER = "expected has either rows or a category"


class BadCaseError(Exception):
    """A case says what this runner does not know, or there is nothing to run."""


@dataclass(frozen=True)
class TableCase:
    """A table or a view that a case starts from; ``columns``: (name, Spark SQL type).

    ``defaults``: a literal of Spark SQL by the name of the column whose default it is.
    """

    table: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Sequence[Any], ...]
    partitioned_by: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()
    kind: str = "table"
    props: Mapping[str, str] = field(default_factory=dict)
    not_null: tuple[str, ...] = ()
    query: str | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in ("table", "view"):
            raise BadCaseError(f"kind {self.kind!r} of {self.table} is not known")
        if self.kind == "view" and self.defaults:
            raise BadCaseError(f"the view {self.table} has defaults")
        if unknown := sorted(set(self.defaults) - {name for name, _ in self.columns}):
            raise BadCaseError(f"defaults of {self.table}: no such column: {', '.join(unknown)}")


@dataclass(frozen=True)
class Expected:
    """Rows (or, with ``select``, the rows of that projection), or the category of an error.

    Neither: it succeeds, with rows that nobody computed. ``columns``: (name, Spark SQL type) of the
    table afterwards.
    """

    rows: tuple[Sequence[Any], ...] | None = None
    category: str | None = None
    select: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] | None = None

    def __post_init__(self) -> None:
        if self.rows is not None and self.category is not None:
            raise BadCaseError(_EITHER)


@dataclass(frozen=True)
class Case:
    """A statement, its tables and what it does; ``cardinality_error_in``: see ``rules``.

    ``nested_missing_fields``: what an UPDATE does with a struct's field that the source lacks:
    ``preserve`` its value, or write ``null``. ``problem`` says why a line is no case that can be
    run; then it has only an ``id``.
    """

    id: str
    create: tuple[TableCase, ...]
    statement: str
    expected: Expected
    settings: Mapping[str, Any] = field(default_factory=dict)
    update_count: int | None = None
    cardinality_error_in: Mapping[str, bool] | None = None
    nested_missing_fields: str | None = None
    problem: str = ""

    def __post_init__(self) -> None:
        if self.nested_missing_fields not in (None, "preserve", "null"):
            raise BadCaseError(f"nested_missing_fields {self.nested_missing_fields} is not known")
        for name, value in self.settings.items():
            if value not in _SETTINGS.get(name, ()):
                raise BadCaseError(f"setting {name} = {value} is not known")


def load_cases(path: Path) -> list[Case]:
    """The cases of a file, in its order; a line that is none has a ``problem``."""
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    return [_case_of(line, number) for number, line in lines if line.strip()]


def _case_of(line: str, number: int) -> Case:
    id_ = f"line {number}"
    try:
        document = json.loads(line)
        id_ = document["id"]
        return _case(document)
    except (ValueError, TypeError, KeyError, BadCaseError) as error:
        return Case(id_, (), "", Expected(rows=()), problem=f"line {number}: {error}")


def _case(document: dict[str, Any]) -> Case:
    known = {name: value for name, value in document.items() if name not in _DESCRIPTIVE}
    known["statement"] = known.pop("statement_spark", known["statement"])
    expected = {name: value for name, value in known["expected"].items() if name != "order_by"}
    known["expected"] = _build(Expected, expected)
    if known["expected"] == Expected():
        raise BadCaseError(_EITHER)
    known["create"] = tuple(_build(TableCase, table) for table in known["create"])
    return _build(Case, known)


def _build(kind: type, document: Mapping[str, Any]) -> Any:
    names = {each.name for each in dataclasses.fields(kind)}
    if unknown := sorted(set(document) - names):
        raise BadCaseError(f"{kind.__name__}: {', '.join(unknown)} is not known")
    return kind(**{n: tuple(v) if isinstance(v, list) else v for n, v in document.items()})
