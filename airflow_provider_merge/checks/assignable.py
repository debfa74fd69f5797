"""The columns that a statement can assign: those of its table, and those that it adds to it.

What schema evolution adds is decided by ``spark_jobs.engine.analysis.schema_evolution``; here are
its rules for whole columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from airflow_provider_merge.checks.relations import Relation
from airflow_provider_merge.checks.type_families import is_wider
from spark_jobs.contract.inserts import DEFAULT_AS, DEFAULT_OF, InsertStatement
from spark_jobs.contract.sql_text import RESERVED_PREFIX, unquoted
from spark_jobs.contract.statements import (
    InsertAction,
    InsertAllAction,
    MergeSpec,
    UpdateAction,
    UpdateAllAction,
)
from spark_jobs.errors import AnalysisError, ErrorCode, NotSupportedError

_PART = re.compile(r"(?:`(?:[^`]|``)*`|[^.`])+")


@dataclass(frozen=True, slots=True)
class Assignable:
    """What can be assigned in ``table``, with the columns of ``source`` that it gets.

    ``source`` None: the statement has no schema evolution. ``named``: the lower-case names of the
    columns that it may add; None: all of the source's.
    """

    table: Relation
    source: Relation | None = None
    named: frozenset[str] | None = None

    @property
    def evolves(self) -> bool:
        """Whether the table may get columns."""
        return self.source is not None

    def column(self, text: str, where: str) -> str | None:
        """The column that an assignment names; None for a field, or where columns are not known.

        Raises:
            AnalysisError: COLUMN_NOT_FOUND.
        """
        if self.table.columns is None:
            return None
        path = path_of(text, self.table)
        name = next(iter(self.table.find(path[0])), None)
        if name is None:
            if not self._may_add(path[0]):
                raise self.table.not_found(text, where, *self._lacking(path[0]))
            name = path[0]
        return name if len(path) == 1 else None

    def added(self) -> list[str]:
        """The source's columns that the table gets for certain, as the source spells them."""
        if self.source is None or self.table.columns is None:
            return []
        return [
            name
            for name in self.source.columns or ()
            if self._may_add(name)
            and not self.table.find(name)
            and not name.startswith((DEFAULT_AS, DEFAULT_OF))
        ]

    def require_addable(self, is_reserved: Callable[[str], bool] | None) -> None:
        """Check the names of new columns; ``is_reserved`` knows those of the table's format.

        Raises:
            AnalysisError: AMBIGUOUS_REFERENCE.
            NotSupportedError: a name is reserved.
        """
        if self.source is None:
            return
        label = self.source.label
        for name in self.added():
            count = len(self.source.find(name))
            if self.named is None and count > 1:
                raise AnalysisError(
                    ErrorCode.AMBIGUOUS_REFERENCE,
                    f"schema evolution: {label} has {count} columns {name}, in any case",
                    "Give each column of the source a name of its own.",
                )
            prefix = name.lower().startswith(RESERVED_PREFIX)
            if prefix or (is_reserved is not None and is_reserved(name)):
                owner = "this provider" if prefix else "the table's format"
                raise NotSupportedError(
                    f"schema evolution: column {name} of {label} cannot be added: {owner} uses "
                    "names like this itself",
                    f"Rename {name} in the source, or leave it out there.",
                )

    def require_not_wider(self, fixed: Sequence[str]) -> None:
        """Check that ``*`` or BY NAME widens none of the ``fixed`` columns.

        Raises:
            NotSupportedError: the source has a wider type.
        """
        if self.source is None or self.named is not None:
            return
        for column in fixed:
            wanted = (self.table.columns or {}).get(column, "")
            for name in self.source.find(column):
                given = (self.source.columns or {})[name]
                if is_wider(given, wanted):
                    raise NotSupportedError(
                        f"schema evolution: {column} of {self.table.label} is a key, whose type "
                        f"{wanted} cannot be changed to {given}",
                        f"Cast {name} to {wanted} in the source.",
                    )

    def _lacking(self, name: str) -> list[Relation]:
        """The source, if it certainly has no column of this name."""
        source = self.source
        return [source] if source and source.columns is not None and not source.find(name) else []

    def _may_add(self, name: str) -> bool:
        if self.source is None or (self.named is not None and name.lower() not in self.named):
            return False
        return self.source.columns is None or bool(self.source.find(name))


def of_merge(spec: MergeSpec, table: Relation, source: Relation) -> Assignable:
    """What the clauses of a MERGE can assign.

    A clause for rows that are NOT MATCHED BY SOURCE adds nothing, but may assign what others add.
    """
    if not spec.schema_evolution:
        return Assignable(table)
    names: list[str] = []
    for case in spec.cases:
        if isinstance(case.action, UpdateAllAction | InsertAllAction):
            return Assignable(table, source)
        if case.when == "not_matched_by_source":
            continue
        if isinstance(case.action, UpdateAction):
            names += [each.column for each in case.action.assignments]
        elif isinstance(case.action, InsertAction):
            names += case.action.columns
    return Assignable(table, source, _first_parts(names, table))


def of_insert(spec: InsertStatement, table: Relation, source: Relation) -> Assignable:
    """What the rows of an INSERT can be stored in; ``source`` may have columns for DEFAULT.

    By position, a source may have more columns than metadata tells: two of one name count once.
    """
    if not spec.schema_evolution:
        return Assignable(table)
    if spec.by_name or table.columns is None or source.columns is None:
        return Assignable(table, source)
    names = [each.lower() for each in source.columns if not each.startswith(DEFAULT_OF)]
    if not spec.columns:
        return Assignable(table, source, frozenset(names[len(table.columns) :]))
    if len(names) != len(spec.columns):
        return Assignable(table, source, _first_parts(spec.columns, table))
    same = [
        text
        for text, name in zip(spec.columns, names, strict=True)
        if path_of(text, table)[0].lower() == name
    ]
    return Assignable(table, source, _first_parts(same, table))


def path_of(text: str, table: Relation) -> list[str]:
    """A column and its fields that ``text`` names, without the alias of ``table``.

    The alias takes precedence over a column of the same name, unless only the latter fits.
    """
    parts = [unquoted(part.strip()) for part in _PART.findall(text)]
    if len(parts) == 1 or parts[0].lower() != table.alias.lower():
        return parts
    is_field = table.find(parts[0]) and not table.find(parts[1])
    return parts if is_field else parts[1:]


def _first_parts(texts: Iterable[str], table: Relation) -> frozenset[str]:
    return frozenset(path_of(text, table)[0].lower() for text in texts)
