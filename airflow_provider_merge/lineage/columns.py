"""From which columns a statement computes the values that it writes.

Every assigned value becomes a SELECT over the relations that it sees, and sqlglot follows its names
to columns of tables and files. A column that is not understood in full is left out: half of its
inputs would be wrong. Conditions, which decide on rows and not on values, are no inputs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_merge.sql.schemas import columns_of_schema
from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.deduplication import DeduplicatedSource
from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec
from spark_jobs.contract.request import FileSource, Source, SqlSource
from spark_jobs.contract.scd2 import Scd2Source
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import (
    Assignment,
    InsertAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
    UpdateAllAction,
    UpdateSpec,
)

if TYPE_CHECKING:
    from sqlglot.lineage import Node

log = logging.getLogger(__name__)

# The target's place among the views; no source is called so.
TARGET = "lineage target"
_WORD = re.compile(r"\w+")
_DIALECT = "spark"

# A view (a source's name, or TARGET) and one of its columns.
Input = tuple[str, str]
# A column of the target, and what its value is computed from; None: not known.
Written = tuple[str, set[Input] | None]


class _UnknownError(Exception):
    """What a value is computed from cannot be told."""


@dataclass(frozen=True)
class Relations:
    """What a statement can read: its sources, and the columns of views as far as they are known."""

    sources: Sequence[Source]
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def queries(self) -> dict[str, str]:
        """The sources that are queries, by name."""
        queries = {each.name: each.query for each in self.sources if isinstance(each, SqlSource)}
        made = DeduplicatedSource | Scd2Source
        narrowed = (each for each in self.sources if isinstance(each, made))
        queries |= {each.name: f"SELECT * FROM {each.source}" for each in narrowed}
        events = [each for each in self.sources if isinstance(each, CdcSource)]
        plain = (each for each in events if each.format == "columns")
        return queries | {each.name: f"SELECT * FROM {each.source}" for each in plain}

    def spelling(self, text: str) -> dict[str, str]:
        """How names are written, by their lower case: in the schemas, else in the statement."""
        words = [text, *self.queries().values()]
        found = {word.lower(): word for each in words for word in _WORD.findall(each)}
        known = {name.lower(): name for columns in self.columns.values() for name in columns}
        return {**found, **known}


def written_columns(statement: object, relations: Relations) -> dict[str, set[Input]]:
    """The columns whose values are understood, and the columns of views that they come from.

    Columns that only get constants are left out, too.
    """
    inputs_by_column: dict[str, set[Input] | None] = {}
    for name, inputs in _written(statement, relations):
        known = inputs_by_column.get(name, set())
        inputs_by_column[name] = None if inputs is None or known is None else known | inputs
    return {name: inputs for name, inputs in inputs_by_column.items() if inputs}


def _written(statement: object, relations: Relations) -> Iterator[Written]:
    if isinstance(statement, MergeSpec):
        for case in statement.cases:
            yield from _of_case(statement, case, relations)
    elif isinstance(statement, UpdateSpec):
        scope = _Scope(relations, {statement.target_alias: TARGET})
        yield from _of_assignments(statement.assignments, statement.target_alias, scope)
    elif isinstance(statement, InsertIntoSpec | InsertOverwriteSpec):
        yield from _of_rows(statement, relations)


def _of_case(spec: MergeSpec, case: MergeCase, relations: Relations) -> Iterator[Written]:
    target, source = {spec.target_alias: TARGET}, {spec.source_alias: spec.source}
    seen = {"matched": {**target, **source}, "not_matched": source, "not_matched_by_source": target}
    scope = _Scope(relations, seen[case.when])
    action = case.action
    if isinstance(action, UpdateAction):
        yield from _of_assignments(action.assignments, spec.target_alias, scope)
    elif isinstance(action, UpdateAllAction | InsertAllAction):
        for name in relations.columns.get(TARGET, ()):
            yield name, scope.inputs(f"{quote(spec.source_alias)}.{quote(name)}")
    elif isinstance(action, InsertAction):
        names = action.columns or relations.columns.get(TARGET, ())
        if len(names) == len(action.values):
            pairs = [Assignment(*pair) for pair in zip(names, action.values, strict=True)]
            yield from _of_assignments(pairs, spec.target_alias, scope)


def _of_assignments(
    assignments: Iterable[Assignment], alias: str, scope: _Scope
) -> Iterator[Written]:
    for each in assignments:
        yield scope.target_column(each.column, alias), scope.inputs(each.value)


def _of_rows(spec: InsertIntoSpec | InsertOverwriteSpec, relations: Relations) -> Iterator[Written]:
    scope = _Scope(relations, {"s": spec.source})
    given = {name.lower() for name in spec.partition}
    targets = relations.columns.get(TARGET, ())
    names = spec.columns or [each for each in targets if each.lower() not in given]
    if spec.by_name:
        for name in names:
            yield name, scope.inputs(f"s.{quote(name)}")
        return
    by_position = scope.all_inputs()
    if len(by_position) == len(names):
        yield from zip(names, by_position, strict=True)


@dataclass(frozen=True)
class _Scope:
    """What an expression sees: relations by the alias that it calls them."""

    relations: Relations
    aliases: Mapping[str, str]

    def inputs(self, value: str) -> set[Input] | None:
        """The columns that a value is computed from."""
        try:
            node = self._lineage("value", f"{value} AS value")
            return set(self._leaves(node, self.relations.spelling(value)))
        except Exception as error:  # noqa: BLE001 - a parser of others; what it cannot is unknown
            log.debug("The inputs of %s are not known: %r", value, error)
            return None

    def all_inputs(self) -> list[set[Input] | None]:
        """The same of every column of the only relation, in their order; empty: not known."""
        try:
            names = [str(name) for name in self._lineage(None, "*")]
        except Exception as error:  # noqa: BLE001 - as above
            log.debug("The columns of %s are not known: %r", self.aliases, error)
            return []
        (alias,) = self.aliases
        return [self.inputs(f"{alias}.{quote(name)}") for name in names]

    def target_column(self, column: str, alias: str) -> str:
        """A column's name as the table or the statement spells it, without the alias."""
        parts = [part.strip("`") for part in re.findall(r"`[^`]*`|[^.`]+", column.strip())]
        if len(parts) > 1 and parts[0].strip().lower() == alias.lower():
            parts = parts[1:]
        known = {each.lower(): each for each in self.relations.columns.get(TARGET, ())}
        first = parts[0].strip()
        return ".".join([known.get(first.lower(), first), *(each.strip() for each in parts[1:])])

    def _lineage(self, column: str | None, select: str) -> Any:
        from sqlglot.lineage import lineage

        views = " CROSS JOIN ".join(
            f"{quote(view)} AS {quote(alias)}" for alias, view in self.aliases.items()
        )
        queries = self.relations.queries()
        _require_no_shadow(queries)
        schema = {
            quote(view): dict.fromkeys(map(quote, columns), "STRING")
            for view, columns in self.relations.columns.items()
        }
        text = f"SELECT {select} FROM {views}"
        sources = {name.lower(): query for name, query in queries.items()}
        if column is None:
            return lineage(None, text, schema, sources=sources, dialect=_DIALECT)
        return lineage(column, text, schema, sources=sources, dialect=_DIALECT)

    def _leaves(self, node: Node, spelling: Mapping[str, str]) -> Iterator[Input]:
        from sqlglot import exp

        views = {name.lower(): name for name in (TARGET, *(s.name for s in self.relations.sources))}
        for leaf in node.walk():
            if leaf.downstream or isinstance(leaf.source, exp.Values | exp.Query):
                continue
            view = views.get(leaf.source.name.lower()) if leaf.source.find(exp.Table) else None
            column = exp.to_column(leaf.name, dialect=_DIALECT).name
            if view is None or column == "*":
                raise _UnknownError(leaf.name)
            yield view, spelling.get(column.lower(), column)


def _require_no_shadow(queries: Mapping[str, str]) -> None:
    """Check that no query gives a name of a source to one of its own tables."""
    from sqlglot import exp, parse_one

    names = {name.lower() for name in queries}
    for query in queries.values():
        for cte in parse_one(query, dialect=_DIALECT).find_all(exp.CTE):
            if cte.alias_or_name.lower() in names:
                raise _UnknownError(cte.alias_or_name)


def file_columns(source: Source) -> list[str] | None:
    """The columns that a source of files is read with, where the request tells them."""
    if isinstance(source, FileSource) and source.schema:
        return list(columns_of_schema(source.schema) or ()) or None
    return None
