"""Which columns and nested fields a statement adds to its table, and which types it widens.

As in Spark's ``MERGE WITH SCHEMA EVOLUTION``, only what ``*`` or a direct assignment stores counts:
a source column into the table's column of the same name. docs/semantics.md, Schema evolution.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    NumericType,
    StructField,
    StructType,
)

from spark_jobs.contract.inserts import DEFAULT_AS, DEFAULT_OF, InsertStatement
from spark_jobs.contract.spark_types import is_wider as is_wider_type
from spark_jobs.contract.spark_types import parse_type
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import (
    InsertAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
    UpdateAllAction,
)
from spark_jobs.contract.text_limits import expressions
from spark_jobs.engine.analysis.analyzer import declared_types
from spark_jobs.engine.runtime.sql_text import find_name, split_name
from spark_jobs.errors import AnalysisError, ErrorCode
from spark_jobs.spi.alterations import SchemaChange
from spark_jobs.spi.tables import TableHandle

_PLAIN_NAME: Final = re.compile(r"\s*(?:`(?:[^`]|``)+`|\w+)(?:\s*\.\s*(?:`(?:[^`]|``)+`|\w+))*\s*")
_WORD: Final = re.compile(r"\w+")
Path = tuple[str, ...]


def schema_changes(
    spec: MergeSpec | InsertStatement, table: TableHandle, source: StructType, *, widens: bool
) -> tuple[SchemaChange, ...]:
    """What ``table`` needs to hold what ``spec`` stores directly from columns of ``source``.

    ``widens``: types may be widened.

    Raises:
        AnalysisError: AMBIGUOUS_REFERENCE; EXPRESSION_INVALID for an INSERT by position;
            TYPE_MISMATCH for a column of NULLs without a type.
    """
    evolution = _Evolution(table, _declared(table), widens)
    if isinstance(spec, MergeSpec):
        evolution.merge(spec, source)
    else:
        evolution.insert(spec, source)
    return tuple(evolution.found.values())


def require_same_columns(
    spec: MergeSpec | InsertStatement, table: TableHandle, source: StructType
) -> None:
    """Refuse a source with columns that ``table`` lacks, or that stores others of a wider type.

    Of an INSERT by position, names decide nothing. A column that the statement's text names, such
    as the kind of a change, is no news.

    Raises:
        AnalysisError: SCHEMA_CHANGED, with each difference; as ``schema_changes``.
    """
    named = _named_in(spec)
    stored = [
        change
        for change in schema_changes(spec, table, source, widens=True)
        if change.before is not None or change.path[0].lower() not in named
    ]
    differences = list(map(str, stored))
    if isinstance(spec, MergeSpec) or spec.by_name:
        known = (*table.column_names, *(each.path[0] for each in stored), *named)
        names = (each.name for each in source)
        differences += [
            f"{name} is not a column of the table"
            for name in names
            if find_name(name, known) is None and not name.startswith((DEFAULT_AS, DEFAULT_OF))
        ]
    if differences:
        raise AnalysisError(
            ErrorCode.SCHEMA_CHANGED,
            f"The source has other columns than {table.name}: {'; '.join(differences)}.",
            "Alter the table, change the source, or set on_schema_change to append, widen or "
            "ignore.",
        )


def _named_in(spec: MergeSpec | InsertStatement) -> frozenset[str]:
    """The words in the statement's expressions, in lower case."""
    texts = (text for _, text in expressions(spec))
    return frozenset(word.lower() for text in texts for word in _WORD.findall(text))


@dataclass(frozen=True, slots=True)
class _Evolution:
    """Collects changes by path; ``schema`` has the declared types of the table's columns."""

    table: TableHandle
    schema: StructType
    widens: bool
    found: dict[Path, SchemaChange] = field(default_factory=dict)

    def merge(self, spec: MergeSpec, source: StructType) -> None:
        for case in spec.cases:
            if isinstance(case.action, UpdateAllAction | InsertAllAction):
                for name, given in _fields(source, "the source"):
                    self._store((name,), given)
            elif case.when != "not_matched_by_source":
                for target, value in self._assigned(case):
                    self._assign(spec, target, value, source)

    def insert(self, spec: InsertStatement, source: StructType) -> None:
        columns = [
            (each.name, each.dataType) for each in source if not each.name.startswith(DEFAULT_OF)
        ]
        if spec.by_name:
            for name, given in _fields(source, "the source"):
                if not name.startswith((DEFAULT_AS, DEFAULT_OF)):
                    self._store((name,), given)
            return
        targets = self._positions(spec, [name for name, _ in columns])
        for target, (name, given) in zip(targets, columns, strict=False):
            known = find_name(target, self.table.column_names)
            is_new = known is None and target.lower() == name.lower()
            if not name.startswith(DEFAULT_AS) and (known or is_new):
                self._store((known or name,), given)

    def _positions(self, spec: InsertStatement, names: Sequence[str]) -> list[str]:
        """The names of the target columns by position, with those that the table lacks."""
        if spec.columns:
            return [split_name(each)[0] for each in spec.columns]
        known = list(self.table.column_names)
        if len(names) != len(known):
            fixed = {split_name(name)[0].lower() for name in spec.partition}
            known = [name for name in known if name.lower() not in fixed]
        more = list(names[len(known) :])
        for index, name in enumerate(more):
            if find_name(name, [*self.table.column_names, *more[:index]]):
                raise AnalysisError(
                    ErrorCode.EXPRESSION_INVALID,
                    f"INSERT: the source has {len(names)} columns for {len(known)} columns of "
                    f"{self.table.name}, and its column {name} is not a new one",
                    "Insert BY NAME.",
                )
        return [*known, *more]

    def _assigned(self, case: MergeCase) -> Iterator[tuple[list[str], str]]:
        action = case.action
        if isinstance(action, UpdateAction):
            for each in action.assignments:
                yield split_name(each.column), each.value
        elif isinstance(action, InsertAction):
            names = action.columns or tuple(map(quote, self.table.column_names))
            for name, value in zip(names, action.values, strict=False):
                yield split_name(name), value

    def _assign(self, spec: MergeSpec, names: list[str], value: str, source: StructType) -> None:
        path = self._target_path(names, spec.target_alias)
        given = _type_at(source, path)
        if given is None:
            return
        old = _type_at(self.schema, path)
        if old is None or self._is_same(spec, path, value):
            self._store(path, given, _spelled(source, path))

    def _target_path(self, names: list[str], alias: str) -> Path:
        """The path that an assignment names; the alias wins over the names of columns."""
        if len(names) == 1 or names[0].lower() != alias.lower():
            return tuple(names)
        known = self.table.column_names
        is_column = find_name(names[0], known) and not find_name(names[1], known)
        return tuple(names) if is_column else tuple(names[1:])

    def _is_same(self, spec: MergeSpec, path: Path, value: str) -> bool:
        """Whether ``value`` is nothing but the source's column, or field, of this path."""
        if not _PLAIN_NAME.fullmatch(value):
            return False
        names = split_name(value)
        if len(names) > 1 and names[0].lower() == spec.source_alias.lower():
            names = names[1:]
        return [each.lower() for each in names] == [each.lower() for each in path]

    def _store(self, path: Path, given: DataType, spelled: Path | None = None) -> None:
        """Let the column or field at ``path`` hold values of a type; ``spelled``: if it is new."""
        here: DataType = self.schema
        done: list[str] = []
        for depth, name in enumerate(path):
            known = find_name(name, here.fieldNames()) if isinstance(here, StructType) else None
            if known is None:
                if isinstance(here, StructType) and depth == len(path) - 1:
                    self._add((*done, (spelled or path)[depth]), given)
                return
            done.append(known)
            assert isinstance(here, StructType)  # noqa: S101 - known is one of its fields
            here = here[known].dataType
        self._grow(tuple(done), here, given)

    def _grow(self, path: Path, wanted: DataType, given: DataType) -> None:
        if isinstance(wanted, StructType) and isinstance(given, StructType):
            for name, inner in _fields(given, ".".join(path)):
                known = find_name(name, wanted.fieldNames())
                if known is None:
                    self._add((*path, name), inner)
                else:
                    self._grow((*path, known), wanted[known].dataType, inner)
        elif isinstance(wanted, ArrayType) and isinstance(given, ArrayType):
            self._grow((*path, "element"), wanted.elementType, given.elementType)
        elif isinstance(wanted, MapType) and isinstance(given, MapType):
            self._grow((*path, "key"), wanted.keyType, given.keyType)
            self._grow((*path, "value"), wanted.valueType, given.valueType)
        elif self.widens and is_wider(given, wanted):
            self.found[path] = SchemaChange(path, ddl_of(given, path), ddl_of(wanted, path))

    def _add(self, path: Path, given: DataType) -> None:
        self.found[path] = SchemaChange(path, ddl_of(given, path))


def _declared(table: TableHandle) -> StructType:
    return StructType([StructField(name, each) for name, each in declared_types(table).items()])


def is_wider(given: DataType, wanted: DataType) -> bool:
    """Whether ``given`` is another type that holds every value of ``wanted``."""
    if not (isinstance(given, NumericType) and isinstance(wanted, NumericType)):
        return False
    return is_wider_type(parse_type(given.simpleString()), parse_type(wanted.simpleString()))


def ddl_of(kind: DataType, path: Path) -> str:
    """The type in DDL form, with every part nullable; ``path`` names the column in errors.

    Raises:
        AnalysisError: TYPE_MISMATCH: a part of it has no type.
    """
    if isinstance(kind, NullType):
        raise AnalysisError(
            ErrorCode.TYPE_MISMATCH,
            f"{'.'.join(path)} is NULL in every row of the source, which gives the new column no "
            "type",
            "Give it one: CAST(NULL AS STRING).",
        )
    if isinstance(kind, StructType):
        fields = _fields(kind, ".".join(path))
        inner = ",".join(f"{quote(name)}:{ddl_of(each, (*path, name))}" for name, each in fields)
        return f"struct<{inner}>"
    if isinstance(kind, ArrayType):
        return f"array<{ddl_of(kind.elementType, (*path, 'element'))}>"
    if isinstance(kind, MapType):
        key, value = ((*path, "key"), (*path, "value"))
        return f"map<{ddl_of(kind.keyType, key)},{ddl_of(kind.valueType, value)}>"
    return kind.simpleString()


def _fields(struct: StructType, owner: str) -> Iterator[tuple[str, DataType]]:
    """Names and types, if no two names differ only in case."""
    names = [each.name.lower() for each in struct]
    for struct_field in struct:
        if names.count(struct_field.name.lower()) > 1:
            raise AnalysisError(
                ErrorCode.AMBIGUOUS_REFERENCE,
                f"schema evolution: {owner} has {names.count(struct_field.name.lower())} columns "
                f"{struct_field.name}",
                "Give each column of the source a name of its own, in any case.",
            )
        yield struct_field.name, struct_field.dataType


def _spelled(struct: StructType, path: Path) -> Path:
    """``path``, which exists, in the spelling of ``struct``."""
    spelled: list[str] = []
    here: DataType = struct
    for name in path:
        assert isinstance(here, StructType)  # noqa: S101 - the path exists
        spelled.append(find_name(name, here.fieldNames()) or name)
        here = here[spelled[-1]].dataType
    return tuple(spelled)


def _type_at(struct: StructType, path: Path) -> DataType | None:
    """The type of the field at ``path``, in any case; None if there is none."""
    here: DataType = struct
    for name in path:
        known = find_name(name, here.fieldNames()) if isinstance(here, StructType) else None
        if known is None or not isinstance(here, StructType):
            return None
        here = here[known].dataType
    return here
