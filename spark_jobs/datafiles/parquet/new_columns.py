"""The columns of a spliced file: those of its source, or of the table if the source is older."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.annotations import annotated
from spark_jobs.datafiles.parquet.footer import (
    ElementField,
    FileField,
    Footer,
    TopColumn,
    number,
)
from spark_jobs.datafiles.parquet.options import Compression, ParquetOptions
from spark_jobs.datafiles.parquet.thrift import BINARY, STRUCT, Struct, Value, list_of


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column of the new file, and the column of the source that has its values, if any.

    ``mapping`` and ``paths``, the leaves' paths in the schema, are None if the source has the
    table's columns.
    """

    column: TopColumn
    source: TopColumn | None
    mapping: FieldMapping | None = None
    paths: tuple[Value, ...] | None = None

    @property
    def is_copy(self) -> bool:
        """Whether the chunks of the source hold its values as they are to be stored."""
        return self.mapping is None or self.mapping.is_copy

    @property
    def old_leaves(self) -> Sequence[int]:
        """The indices of its chunks in the row groups of the source."""
        return () if self.source is None else self.source.leaves


def new_columns(footer: Footer, mappings: Sequence[FieldMapping] | None) -> list[NewColumn]:
    """The columns of the new file, in order.

    The source must hold the columns of its schema.
    """
    if mappings is None:
        return [NewColumn(column, column) for column in footer.columns]
    by_name = {column.name: column for column in footer.columns}
    columns: list[NewColumn] = []
    leaf = 0
    for mapping, as_new in zip(mappings, _as_stored(mappings), strict=True):
        stored = as_new
        source = None if mapping.source is None else by_name[mapping.source.name]
        if source is not None and mapping.is_copy:
            stored = _renamed(source, mapping.field.name)
        leaves = range(leaf, leaf + len(stored.leaves))
        elements = tuple(annotated(stored.elements, [mapping.field]))
        column = TopColumn(stored.name, elements, leaves, stored.field)
        columns.append(NewColumn(column, source, mapping, tuple(leaf_paths(column.elements))))
        leaf = leaves.stop
    return columns


def file_fields(footer: Footer, columns: Sequence[NewColumn]) -> Struct:
    """The fields of the new file's footer, to which rows and row groups are added.

    Properties of an older file describe its columns, so they are left out.
    """
    if all(column.mapping is None for column in columns):
        return footer.fields
    root, *_ = footers.items(footer.fields[FileField.SCHEMA])
    elements: list[Struct] = [{**root, ElementField.NUM_CHILDREN: thrift.i32(len(columns))}]
    for each in columns:
        elements.extend(each.column.elements)
    fields = {k: v for k, v in footer.fields.items() if k != FileField.PROPERTIES}
    fields[FileField.SCHEMA] = list_of(STRUCT, elements)
    orders = fields.pop(FileField.COLUMN_ORDERS, None)
    if orders is not None and footer.has_column_orders and footer.columns:
        leaves = sum(len(each.column.leaves) for each in columns)
        fields[FileField.COLUMN_ORDERS] = list_of(STRUCT, footers.items(orders)[:1] * leaves)
    return fields


def _as_stored(mappings: Sequence[FieldMapping]) -> tuple[TopColumn, ...]:
    """The columns as a new file of the table stores them."""
    sink = pa.BufferOutputStream()
    schema = pa.schema(mapping.field for mapping in mappings)
    arguments = ParquetOptions.for_new_file().writer_arguments(Compression())
    with pq.ParquetWriter(sink, schema, **arguments):
        pass
    return footers.read_footer(pa.BufferReader(sink.getvalue())).columns


def _renamed(column: TopColumn, name: str) -> TopColumn:
    first, *others = column.elements
    named = {**first, ElementField.NAME: thrift.binary(name.encode())}
    return TopColumn(name, (named, *others), column.leaves, column.field.with_name(name))


def leaf_paths(elements: Sequence[Struct]) -> Iterator[Value]:
    """The path of each leaf of a column, in order."""
    # The names above the element, each with the number of its children that are still to come.
    above: list[tuple[bytes, int]] = []
    for element in elements:
        name = element[ElementField.NAME].data
        if ElementField.TYPE in element:
            yield list_of(BINARY, [*(each for each, _ in above), name])
        above.append((name, number(element, ElementField.NUM_CHILDREN)))
        while above and above[-1][1] == 0:
            above.pop()
            if above:
                above[-1] = (above[-1][0], above[-1][1] - 1)
