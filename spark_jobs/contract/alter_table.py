"""ALTER TABLE: a list of changes of a table's definition, and the report of what they did.

Columns are named as in SQL: ``column``, or ``column.field`` for a nested field, with ``element``
and ``value`` for what arrays and maps contain; a part with other characters is in backticks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from spark_jobs.contract.checks import require, require_among, require_column, require_identifier
from spark_jobs.contract.literals import require_literal
from spark_jobs.contract.partition_keys import parsed_key
from spark_jobs.contract.sort_fields import SortField, sort_field
from spark_jobs.contract.spark_types import parse_type
from spark_jobs.contract.sql_text import name_parts
from spark_jobs.errors import RequestError

Distribution = Literal["none", "hash", "range"]


@dataclass(frozen=True, slots=True)
class AddColumn:
    """``ADD COLUMN``; without ``first`` and ``after``, the column becomes the last one.

    ``default`` is a literal of Spark SQL. ``after`` is a name within the same struct.
    """

    column: str
    type: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None
    first: bool = False
    after: str | None = None
    if_not_exists: bool = False
    kind: ClassVar[str] = "add_column"

    def __post_init__(self) -> None:
        require_column("column", self.column)
        require_identifier("column", name_parts(self.column)[-1])
        _require_type(self.type, self.column)
        _require_place(self.first, self.after)
        if self.default is not None:
            require_literal("default", self.default, self.type)


@dataclass(frozen=True, slots=True)
class DropColumn:
    """``DROP COLUMN``"""

    column: str
    if_exists: bool = False
    kind: ClassVar[str] = "drop_column"

    def __post_init__(self) -> None:
        require_column("column", self.column)


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """``RENAME COLUMN column TO new_name``; a nested field stays in its struct.

    ``if_exists``: if there is no such column, nothing is renamed.
    """

    column: str
    new_name: str
    if_exists: bool = False
    kind: ClassVar[str] = "rename_column"

    def __post_init__(self) -> None:
        require_column("column", self.column)
        require_identifier("new_name", self.new_name)


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """``ALTER COLUMN column TYPE type``: a type that holds all values of the present one."""

    column: str
    type: str
    kind: ClassVar[str] = "widen_column"

    def __post_init__(self) -> None:
        require_column("column", self.column)
        _require_type(self.type, self.column)


@dataclass(frozen=True, slots=True)
class CommentColumn:
    """``ALTER COLUMN column COMMENT comment``; an empty comment is none."""

    column: str
    comment: str
    kind: ClassVar[str] = "comment_column"

    def __post_init__(self) -> None:
        require_column("column", self.column)


@dataclass(frozen=True, slots=True)
class SetNullable:
    """``ALTER COLUMN column DROP NOT NULL``, or ``SET NOT NULL``."""

    column: str
    nullable: bool = True
    kind: ClassVar[str] = "set_nullable"

    def __post_init__(self) -> None:
        require_column("column", self.column)


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """``ALTER COLUMN column FIRST``, or ``AFTER`` another one of the same struct."""

    column: str
    first: bool = False
    after: str | None = None
    kind: ClassVar[str] = "move_column"

    def __post_init__(self) -> None:
        require_column("column", self.column)
        _require_place(self.first, self.after)
        require(
            self.first or self.after is not None,
            "after",
            f"the place of {self.column} is missing",
            "Give first=True, or the name of the column before it.",
        )


@dataclass(frozen=True, slots=True)
class SetDefault:
    """``ALTER COLUMN column SET DEFAULT default``, a literal; None: ``DROP DEFAULT``."""

    column: str
    default: str | None
    kind: ClassVar[str] = "set_default"

    def __post_init__(self) -> None:
        require_column("column", self.column)
        require(self.default is None or bool(self.default.strip()), "default", "is empty")


@dataclass(frozen=True, slots=True)
class CommentTable:
    """``COMMENT ON TABLE table IS comment``; an empty comment is none."""

    comment: str
    kind: ClassVar[str] = "comment_table"


@dataclass(frozen=True, slots=True)
class SetProperties:
    """``SET TBLPROPERTIES``; ``format-version`` upgrades an Iceberg table."""

    properties: Mapping[str, str]
    kind: ClassVar[str] = "set_properties"

    def __post_init__(self) -> None:
        require(bool(self.properties), "properties", "there are none")
        for name in self.properties:
            require(bool(name.strip()), "properties", "a name is empty")


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """``UNSET TBLPROPERTIES``; one that the table does not have is no error."""

    names: tuple[str, ...]
    kind: ClassVar[str] = "unset_properties"

    def __post_init__(self) -> None:
        require(bool(self.names), "names", "there are none")


@dataclass(frozen=True, slots=True)
class AddPartitionField:
    """``ADD PARTITION FIELD field AS name``; ``field`` is a column or a transform of one."""

    field: str
    name: str | None = None
    if_not_exists: bool = False
    kind: ClassVar[str] = "add_partition_field"

    def __post_init__(self) -> None:
        parsed_key(self.field, "field")
        _require_name("name", self.name)


@dataclass(frozen=True, slots=True)
class DropPartitionField:
    """``DROP PARTITION FIELD field``: the name of a field, or the transform that it is of."""

    field: str
    if_exists: bool = False
    kind: ClassVar[str] = "drop_partition_field"

    def __post_init__(self) -> None:
        parsed_key(self.field, "field")


@dataclass(frozen=True, slots=True)
class ReplacePartitionField:
    """``REPLACE PARTITION FIELD field WITH by AS name``"""

    field: str
    by: str
    name: str | None = None
    kind: ClassVar[str] = "replace_partition_field"

    def __post_init__(self) -> None:
        parsed_key(self.field, "field")
        parsed_key(self.by, "by")
        _require_name("name", self.name)


@dataclass(frozen=True, slots=True)
class SetWriteOrder:
    """``WRITE ORDERED BY order``: ``column DESC NULLS LAST``; without any, rows are not sorted.

    ``distribution``: also the property ``write.distribution-mode``; None: it stays.
    """

    order: tuple[str, ...] = ()
    distribution: Distribution | None = None
    kind: ClassVar[str] = "set_write_order"

    def __post_init__(self) -> None:
        modes = get_args(Distribution)
        if self.distribution is not None:
            require_among(self.distribution, modes, "distribution")
        self.fields()

    def fields(self) -> tuple[SortField, ...]:
        """The parts of the order."""
        return tuple(sort_field(each, f"order[{i}]") for i, each in enumerate(self.order))


@dataclass(frozen=True, slots=True)
class SetIdentifierFields:
    """``SET IDENTIFIER FIELDS columns``: they take the place of all that there are."""

    columns: tuple[str, ...]
    kind: ClassVar[str] = "set_identifier_fields"

    def __post_init__(self) -> None:
        _require_columns(self.columns)


@dataclass(frozen=True, slots=True)
class DropIdentifierFields:
    """``DROP IDENTIFIER FIELDS columns``; ``if_exists``: other columns are no error."""

    columns: tuple[str, ...]
    if_exists: bool = False
    kind: ClassVar[str] = "drop_identifier_fields"

    def __post_init__(self) -> None:
        _require_columns(self.columns)


ColumnChange = (
    AddColumn
    | DropColumn
    | RenameColumn
    | WidenColumn
    | CommentColumn
    | SetNullable
    | MoveColumn
    | SetDefault
)
PropertyChange = CommentTable | SetProperties | UnsetProperties
PartitionFieldChange = AddPartitionField | DropPartitionField | ReplacePartitionField
IdentifierChange = SetIdentifierFields | DropIdentifierFields
TableChange = (
    ColumnChange | PropertyChange | PartitionFieldChange | SetWriteOrder | IdentifierChange
)


@dataclass(frozen=True, slots=True)
class AlterTableSpec:
    """Change the definition of the target: all ``changes``, one after the other, or none."""

    changes: tuple[TableChange, ...]
    kind: ClassVar[str] = "alter_table"

    def __post_init__(self) -> None:
        require(bool(self.changes), "changes", "there are none", "Name at least one change.")


@dataclass(frozen=True, slots=True)
class AlteredPart:
    """A part of a table's definition, such as ``column``, before and after; None: there is none."""

    what: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class AlterTableReport:
    """What a statement changed of a table's definition, or would change.

    ``omitted`` counts parts for which a report has no room.
    """

    parts: tuple[AlteredPart, ...] = ()
    omitted: int = 0

    @property
    def changes(self) -> bool:
        """Whether the statement changed, or would change, anything."""
        return bool(self.parts) or self.omitted > 0


def _require_type(text: str, column: str) -> None:
    require(bool(text.strip()), "type", f"of column {column} is empty")
    try:
        parse_type(text)
    except RequestError as error:
        raise error.within("type", f"of column {column}") from None


def _require_place(first: bool, after: str | None) -> None:
    require(not (first and after is not None), "after", "give either first or after, not both")
    require(after is None or bool(after.strip()), "after", "is empty")


def _require_name(field: str, name: str | None) -> None:
    if name is not None:
        require_identifier(field, name)


def _require_columns(columns: tuple[str, ...]) -> None:
    require(bool(columns), "columns", "there are none")
    for each in columns:
        require_column("columns", each)
