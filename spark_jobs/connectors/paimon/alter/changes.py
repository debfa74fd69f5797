"""Changes of columns and options, by the rules of Paimon's ``SchemaManager``. Driver only."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from spark_jobs.connectors.paimon.alter.fields import Place, find_place, names_at, type_text
from spark_jobs.connectors.paimon.format.types import is_nullable, to_paimon, to_spark
from spark_jobs.connectors.paimon.library import new_schemas
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.paimon.table.table_spec import default_text
from spark_jobs.connectors.shared.table.alterations import (
    column_exists,
    find_name,
    no_column,
    not_null,
    not_widened,
    refuse_reserved_prefix,
)
from spark_jobs.contract.alter_table import (
    AddColumn,
    CommentColumn,
    CommentTable,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SetDefault,
    SetNullable,
    SetProperties,
    TableChange,
    UnsetProperties,
    WidenColumn,
)
from spark_jobs.contract.literals import require_literal
from spark_jobs.contract.request import TableName
from spark_jobs.contract.spark_types import SparkType, is_wider, parse_type
from spark_jobs.contract.sql_text import name_parts
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.paimon.definitions import (
    NEVER,
    VECTORS,
    VECTORS_MODIFIABLE,
    WITH_SNAPSHOTS,
    is_reserved,
    refuse_change,
)

_COMMENT: Final = "comment"
_OTHER_ENGINE: Final = "Alter the table with Paimon's own engines."
# Options whose values name columns.
_NAMES_COLUMNS: Final = re.compile(r"field|column|key|cluster|partition", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"[,;:]")
_OF_FIELDS: Final = "fields."


@dataclass
class Changing:
    """A table ``name`` whose ``schema``, pypaimon's, changes step by step.

    ``found`` are pypaimon's changes, of which each is made before the next one is looked at.
    """

    name: TableName
    table: PinnedTable
    schema: Any
    found: list[Any] = field(default_factory=list)

    def make(self, change: TableChange) -> None:
        """Make one change.

        Raises:
            AnalysisError: COLUMN_NOT_FOUND, COLUMN_EXISTS, TYPE_MISMATCH.
            NotSupportedError: Paimon, or this connector, does not allow it; names the column.
        """
        refuse_change(change)
        acts: dict[type, Callable[[Any], None]] = {
            AddColumn: self._add,
            SetProperties: self._set,
            UnsetProperties: self._unset,
            CommentTable: self._comment_table,
        }
        if type(change) in acts:
            acts[type(change)](change)
            return
        columns: dict[type, Callable[[Any, Place], None]] = {
            DropColumn: self._drop,
            RenameColumn: self._rename,
            WidenColumn: self._widen,
            CommentColumn: self._comment,
            SetNullable: self._set_nullable,
            MoveColumn: self._move,
            SetDefault: self._set_default,
        }
        path = name_parts(change.column)  # type: ignore[union-attr]
        place = find_place(self.schema.fields, path)
        if place is None:
            if isinstance(change, DropColumn | RenameColumn) and change.if_exists:
                return
            raise no_column(self.name, path, self._known(path))
        self._refuse_in_key(place)
        if not place.is_field and not isinstance(change, WidenColumn | SetNullable):
            raise NotSupportedError(
                f"{self.name}: {'.'.join(place.path)} is what an array or map contains, not a "
                "field.",
                "Name a column, or a field of a struct.",
            )
        columns[type(change)](change, place)

    def _known(self, path: tuple[str, ...]) -> list[str]:
        return names_at(self.schema.fields, path[:-1]) or []

    def _apply(self, *changes: Any) -> None:
        try:
            self.schema = new_schemas.altered_schema(self.table.table, self.schema, changes)
        except ValueError as error:
            raise NotSupportedError(
                f"{self.name}: Paimon refuses it: {error}", _OTHER_ENGINE
            ) from error
        self.found += changes

    def _add(self, change: AddColumn) -> None:
        path = name_parts(change.column)
        above = find_place(self.schema.fields, path[:-1]) if path[:-1] else None
        siblings = names_at(self.schema.fields, path[:-1])
        if siblings is None:
            raise no_column(self.name, path[:-1], self._known(path[:-1]))
        if above is not None:
            self._refuse_in_key(above)
        path = (*(above.path if above else ()), path[-1])
        if (taken := find_name(path[-1], siblings)) is not None:
            self._require_equal((*path[:-1], siblings[taken]), change)
            return
        self._refuse_new_name(path[-1])
        if not change.nullable:
            raise NotSupportedError(
                f"{self.name}: column {change.column} cannot be added as NOT NULL: the rows that "
                "are there have no value for it.",
                "Leave NOT NULL out.",
            )
        move = None
        if change.first or change.after is not None:
            move = new_schemas.placed(path[-1], self._other(siblings, path, change.after))
        kind = to_paimon(change.type, change.column, nullable=True)
        added = new_schemas.with_type(path, kind, change.comment or None, move)
        if change.default is None:
            self._apply(added)
        else:
            self._apply(added, self._default(path, change.default, change.type))

    def _require_equal(self, path: tuple[str, ...], change: AddColumn) -> None:
        """Check that the column that is there is the one that is asked for, and that it may be."""
        place = find_place(self.schema.fields, path)
        assert place is not None  # noqa: S101 - its name was found
        wanted = to_paimon(change.type, change.column, nullable=change.nullable)
        same = to_spark(place.type, "").lower() == to_spark(wanted, "").lower()
        is_now = type_text(place.type)
        if not (change.if_not_exists and same and is_nullable(place.type) == change.nullable):
            raise column_exists(self.name, path, is_now)

    def _other(self, siblings: list[str], path: tuple[str, ...], after: str | None) -> str | None:
        """The column behind which one is put, as the schema spells it; None: it is the first."""
        if after is None:
            return None
        other = name_parts(after)[-1]
        index = find_name(other, siblings)
        if index is None:
            raise no_column(self.name, (*path[:-1], other), siblings)
        return siblings[index]

    def _drop(self, change: DropColumn, place: Place) -> None:
        from pypaimon.schema.schema_change import SchemaChange

        self._refuse_key(place, "dropped")
        self._refuse_mentioned(place)
        self._apply(SchemaChange.drop_column(list(place.path)))

    def _rename(self, change: RenameColumn, place: Place) -> None:
        from pypaimon.schema.schema_change import SchemaChange

        if place.path[-1] == change.new_name:
            return
        self._refuse_key(place, "renamed")
        self._refuse_mentioned(place)
        self._refuse_new_name(change.new_name)
        index = find_name(change.new_name, place.siblings)
        if index is not None and place.siblings[index] != place.path[-1]:
            taken = (*place.path[:-1], place.siblings[index])
            other = find_place(self.schema.fields, taken)
            raise column_exists(self.name, taken, type_text(other.type) if other else "")
        self._apply(SchemaChange.rename_column(list(place.path), change.new_name))

    def _widen(self, change: WidenColumn, place: Place) -> None:
        before = None if not isinstance(place.type, str) else parse_type(to_spark(place.type, ""))
        wanted = parse_type(change.type)
        kind = to_paimon(change.type, change.column, nullable=True)
        if before is not None and to_spark(kind, "") == to_spark(place.type, ""):
            return
        self._refuse_key(place, "given another type")
        if before is None or not (is_wider(wanted, before) or _is_longer(wanted, before)):
            raise not_widened(self.name, place.path, type_text(place.type), change.type.upper())
        self._apply(new_schemas.widened(place.path, kind))

    def _comment(self, change: CommentColumn, place: Place) -> None:
        from pypaimon.schema.schema_change import SchemaChange

        comment: Any = change.comment or None
        self._apply(SchemaChange.update_column_comment(list(place.path), comment))

    def _set_nullable(self, change: SetNullable, place: Place) -> None:
        from pypaimon.schema.schema_change import SchemaChange

        if is_nullable(place.type) == change.nullable:
            return
        if not change.nullable:
            raise not_null(self.name, place.path)
        self._refuse_key(place, "made nullable")
        self._apply(SchemaChange.update_column_nullability(list(place.path), True))

    def _move(self, change: MoveColumn, place: Place) -> None:
        from pypaimon.schema.schema_change import SchemaChange

        if len(place.path) > 1:
            raise NotSupportedError(
                f"{self.name}: {change.column} is a nested field, which Paimon does not move.",
                "Leave it where it is: names tell fields apart.",
            )
        (column,) = place.path
        others = [each for each in place.siblings if each != column]
        move = new_schemas.placed(column, self._other(others, place.path, change.after))
        self._apply(SchemaChange.update_column_position(move))

    def _set_default(self, change: SetDefault, place: Place) -> None:
        kind = "string" if change.default is None else to_spark(place.type, change.column)
        self._apply(self._default(place.path, change.default, kind))

    def _default(self, path: tuple[str, ...], text: str | None, declared: str) -> Any:
        from pypaimon.schema.schema_change import SchemaChange

        value = None if text is None else require_literal("default", text, declared)
        if len(path) > 1:
            raise NotSupportedError(
                f"{self.name}: {'.'.join(path)} is a nested field, and Paimon has defaults of "
                "columns only.",
                "Leave the default out.",
            )
        plain: Any = None if value is None else default_text(path[0], value)
        return SchemaChange.update_column_default_value(list(path), plain)

    def _comment_table(self, change: CommentTable) -> None:
        from pypaimon.schema.schema_change import SchemaChange

        self._apply(SchemaChange.update_comment(change.comment or None))

    def _set(self, change: SetProperties) -> None:
        from pypaimon.schema.schema_change import SchemaChange

        for option, value in change.properties.items():
            if option == _COMMENT:
                self._comment_table(CommentTable(value))
            elif self.schema.options.get(option) != value:
                self._refuse_fixed(option)
                self._apply(SchemaChange.set_option(option, value))

    def _unset(self, change: UnsetProperties) -> None:
        from pypaimon.schema.schema_change import SchemaChange

        for option in change.names:
            if option == _COMMENT:
                self._comment_table(CommentTable(""))
            elif option in self.schema.options:
                self._refuse_fixed(option)
                self._apply(SchemaChange.remove_option(option))

    def _refuse_fixed(self, option: str) -> None:
        has_rows = self.table.snapshot is not None
        if option in NEVER or (has_rows and option in WITH_SNAPSHOTS):
            raise NotSupportedError(
                f"{self.name}: option {option} says how the table's files are to be read, and is "
                "fixed" + ("." if option in NEVER else " since it has a snapshot."),
                "Create a table with other options, and insert the rows there.",
            )
        modifiable = self.schema.options.get(VECTORS_MODIFIABLE, "false").lower() == "true"
        if has_rows and option == VECTORS and not modifiable:
            raise NotSupportedError(
                f"{self.name}: option {option} can only change if {VECTORS_MODIFIABLE} is true.",
                f"Set {VECTORS_MODIFIABLE} = true first, as Paimon's own engines demand.",
            )

    def _refuse_key(self, place: Place, act: str) -> None:
        """Refuse what would move rows, or mix up their keys."""
        column = place.path[0]
        keys = {
            "partition": self.table.schema.partition_keys,
            "primary key": self.table.schema.primary_keys,
            "bucket key": self.table.schema.bucket_key,
        }
        for kind, columns in keys.items():
            if column in columns:
                raise NotSupportedError(
                    f"{self.name}: {column} is a {kind} column, which cannot be {act}.",
                    "Create a table with other keys, and insert the rows there.",
                )

    def _refuse_mentioned(self, place: Place) -> None:
        """Refuse to rename or drop what an option of the table names."""
        if len(place.path) > 1:
            return
        column = place.path[0]
        for option, value in self.schema.options.items():
            if column in _named(option, value):
                raise NotSupportedError(
                    f"{self.name}: its option {option} names the column {column}.",
                    f"Unset the option first, or leave the column. {_OTHER_ENGINE}",
                )

    def _refuse_in_key(self, place: Place) -> None:
        if place.in_key:
            raise NotSupportedError(
                f"{self.name}: {'.'.join(place.path)} is in the keys of a map, which Paimon cannot "
                "change.",
                "Add a column with another type.",
            )

    def _refuse_new_name(self, new: str) -> None:
        refuse_reserved_prefix(self.name, new)
        if is_reserved(new):
            raise NotSupportedError(
                f"{self.name}: Paimon keeps the name {new} for itself.", "Take another name."
            )


def _named(option: str, value: str) -> set[str]:
    """What may be columns, whose names can have blanks and dots, in an option of a table."""
    names = set[str]()
    if option.startswith(_OF_FIELDS):
        middle = option.removeprefix(_OF_FIELDS).rpartition(".")[0]
        names |= {middle, *middle.split("."), *_listed(middle)}
    if _NAMES_COLUMNS.search(option):
        names |= {*_listed(value), *value.split()}
    return names


def _listed(text: str) -> list[str]:
    return [each.strip() for each in _BETWEEN.split(text)]


def _is_longer(wanted: SparkType, before: SparkType) -> bool:
    """Whether a type of texts holds all texts of another one."""
    if before.name != "varchar":
        return False
    return wanted.name == "string" or (
        wanted.name == "varchar" and wanted.arguments[0] > before.arguments[0]
    )
