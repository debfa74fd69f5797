"""How the columns of a table are found in a data file that was written with an older schema.

The connector pairs columns and nested fields by their ids; this module does not know ids. Runs on
executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.datafiles.conform import list_offsets, read_as
from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.errors import DataError, ErrorCode


@dataclass(frozen=True, slots=True)
class Fill:
    """The values of a BIGINT column where a file stores none: by the row's position (from 0)."""

    first: int
    step: int

    def filled(self, array: pa.Array, positions: Positions) -> pa.Array:
        """``array`` of the rows at ``positions``, with values in place of NULLs."""
        if not array.null_count:
            return array
        return pc.coalesce(array, pa.array(self.first + self.step * positions))


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """A column or nested field of the table, and the one in the file that has its values.

    ``source`` is None if the file has none: all values are ``constant``, or NULL. ``parts`` are the
    mappings of a struct's fields, of a list's element, or of a map's key and value. Values of a
    fixed length are padded to ``padded_to`` characters or bytes; 0: as they are. ``fill`` has the
    values of rows for which the file stores none.
    """

    field: pa.Field
    source: pa.Field | None
    parts: tuple[FieldMapping, ...] = ()
    padded_to: int = 0
    fill: Fill | None = None
    constant: pa.Scalar | None = None

    @property
    def is_copy(self) -> bool:
        """Whether the values are stored in the file as the table stores them; the name may differ.

        Values that may be NULL are not stored as required ones are, nor those of a field that lacks
        what the table's metadata of it says, such as its id.
        """
        if self.source is None or self.fill or self.padded_to:
            return False
        if self.field.metadata and self.field.metadata != self.source.metadata:
            return False
        if self.source.nullable != self.field.nullable:
            return False
        if not self.source.type.equals(self.field.type):
            return False
        named = pa.types.is_struct(self.field.type)
        return all(
            part.is_copy and (not named or part.stored.name == part.field.name)
            for part in self.parts
        )

    @property
    def stored(self) -> pa.Field:
        """The field in the file, which must have one."""
        assert self.source is not None  # noqa: S101
        return self.source

    def values(self, array: pa.Array) -> pa.Array:
        """The values of the table's field, of its type, from those of the file's field.

        NULLs stay, even if they are older than a NOT NULL of the column.

        Raises:
            DataError: NOT_NULL_VIOLATION: a required nested value is NULL; names the field.
            OtherColumnsError: a value is not valid for the field's type.
        """
        return read_as(self.arranged(array), self.field.with_nullable(nullable=True))

    def filled(self, values: pa.ChunkedArray, positions: Positions) -> pa.ChunkedArray:
        """``values`` of the rows at ``positions``, with those that the file does not store."""
        if self.fill is None:
            return values
        whole = pa.concat_arrays(values.chunks) if values.num_chunks else pa.nulls(0, values.type)
        return pa.chunked_array([self.fill.filled(whole, positions)])

    def missing(self, count: int) -> pa.Array:
        """``count`` values of a field that the file does not have."""
        if self.constant is None:
            return pa.nulls(count, self.field.type)
        return pa.repeat(self.constant, count)

    def arranged(self, array: pa.Array) -> pa.Array:
        """``array`` with the nested fields of the table, of the types that the file has."""
        kind = self.field.type
        if len(array) == 0:
            return pa.nulls(0, kind)
        if not self.parts:
            return _padded(array, kind, self.padded_to) if self.padded_to else array
        if pa.types.is_struct(kind):
            children = [part.part_of(array) for part in self.parts]
            names = [child.name for child in kind]
            return pa.StructArray.from_arrays(children, names, mask=array.is_null())
        if pa.types.is_map(kind):
            return _rearranged_map(array, *self.parts)
        (element,) = self.parts
        values = element.arranged(array.flatten())
        offsets = list_offsets(array).cast(pa.int32())
        return pa.ListArray.from_arrays(offsets, values, mask=array.is_null())

    def part_of(self, array: pa.StructArray) -> pa.Array:
        """This field of a struct, from the file's."""
        if self.source is None:
            return self.missing(len(array))
        return self.arranged(array.field(self.source.name))


def recorded_columns(mappings: Iterable[FieldMapping]) -> list[pa.Field]:
    """The columns that a file must have for ``mappings``, as its schema records them."""
    return [each.source for each in mappings if each.source is not None]


def table_columns(
    rows: pa.Table, mappings: Sequence[FieldMapping], positions: Positions
) -> pa.Table:
    """The table's columns, from those of a file, of its rows at ``positions``."""
    columns = []
    for mapping in mappings:
        if mapping.source is None:
            chunks = [mapping.missing(rows.num_rows)]
        else:
            chunks = [mapping.values(chunk) for chunk in rows.column(mapping.source.name).chunks]
        columns.append(mapping.filled(pa.chunked_array(chunks, mapping.field.type), positions))
    return pa.Table.from_arrays(columns, schema=pa.schema(each.field for each in mappings))


def require_no_null(field: pa.Field, values: pa.ChunkedArray, path: str) -> None:
    """Check the carried values of a column of the file at ``path``.

    Raises:
        DataError: NOT_NULL_VIOLATION: the column became NOT NULL after NULLs had been written.
    """
    if not field.nullable and values.null_count:
        raise DataError(
            ErrorCode.NOT_NULL_VIOLATION,
            f"Column {field.name} must not be NULL, but data file {path}, which is older, holds "
            f"{values.null_count} NULLs in rows that this statement has to write again.",
            "Update those rows, or let the column be NULL again.",
        )


def _rearranged_map(array: pa.MapArray, key: FieldMapping, value: FieldMapping) -> pa.MapArray:
    entry = pa.struct([array.type.key_field, array.type.item_field])
    lists = array.cast(pa.list_(pa.field("entries", entry, nullable=False)))
    entries = lists.flatten()
    keys, items = key.arranged(entries.field(0)), value.arranged(entries.field(1))
    offsets = list_offsets(lists).cast(pa.int32())
    kind = pa.map_(keys.type, items.type)
    return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=array.is_null())


def _padded(array: pa.Array, kind: pa.DataType, length: int) -> pa.Array:
    """Texts padded with blanks, or bytes padded with zeros."""
    plain = array.cast(kind)
    if pa.types.is_string(kind):
        return pc.utf8_rpad(plain, width=length, padding=" ")
    values = [None if value is None else value.ljust(length, b"\0") for value in plain.to_pylist()]
    return pa.array(values, kind)
