"""Which row groups of a parquet file can be copied into a new one, as a whole or in part."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import pyarrow as pa

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import group_copies
from spark_jobs.datafiles.parquet.footer import (
    MISUNDERSTOOD,
    ElementField,
    FileField,
    Footer,
    GroupField,
    MetaField,
    NotSpliceableError,
    TopColumn,
    number,
)
from spark_jobs.datafiles.parquet.group_writer import StoredGroup
from spark_jobs.datafiles.parquet.thrift import Struct

# Smaller row groups are better put together. In stored bytes, and in rows: what compresses well is
# not small.
LEAST_BYTES: Final = 4 * 1024 * 1024
LEAST_ROWS: Final = 1024 * 1024
# Readers decompress their pages otherwise, because these writers marked them wrongly.
_KNOWN_BY_NAME: Final = re.compile(rb"parquet-cpp-arrow version [01]\.")
# The share of a row group's bytes: decoding the others takes memory.
_LEAST_COPIED: Final = 0.5
_FORM: Final = (
    ElementField.TYPE,
    ElementField.TYPE_LENGTH,
    ElementField.REPETITION,
    ElementField.NUM_CHILDREN,
)


class CopyableFile:
    """An open file of which some columns are stored as in a new file of the table."""

    def __init__(
        self, stream: pa.NativeFile, footer: Footer, columns: tuple[TopColumn | None, ...]
    ) -> None:
        self._stream = stream
        self._footer = footer
        self._columns = columns

    @classmethod
    def of(
        cls, stream: pa.NativeFile, form: Footer, mappings: Sequence[FieldMapping]
    ) -> CopyableFile | None:
        """The file, if some columns are stored as in ``form``; ids and the root may differ."""
        try:
            footer = footers.read_footer(stream)
        except NotSpliceableError:
            return None
        created_by = footer.fields.get(FileField.CREATED_BY)
        if created_by is not None and _KNOWN_BY_NAME.match(created_by.data):
            return None
        by_name = {column.name: column for column in footer.columns}
        pairs = zip(form.columns, mappings, strict=True)
        columns = tuple(_source(by_name, wanted, mapping) for wanted, mapping in pairs)
        return cls(stream, footer, columns) if any(columns) else None

    def leaves(self, names: Collection[str]) -> list[int]:
        """The indices of the columns' chunks in each row group."""
        return [i for column in self._footer.columns if column.name in names for i in column.leaves]

    def read(self, number_of_group: int, least_bytes: int) -> StoredGroup | None:
        """A row group that looks sound, if it is large: of so many bytes, or of many rows.

        Most of its bytes are in columns that can be copied.
        """
        fields = self._footer.row_groups[number_of_group]
        try:
            return self._read(fields, least_bytes)
        except (NotSpliceableError, *MISUNDERSTOOD):
            return None

    def _read(self, fields: Struct, least_bytes: int) -> StoredGroup | None:
        metas = [footers.meta_of(chunk) for chunk in footers.chunks_of(fields)]
        leaves = [leaf for column in self._columns if column for leaf in column.leaves]
        copied = sum(number(metas[leaf], MetaField.COMPRESSED_SIZE) for leaf in leaves)
        stored = sum(number(meta, MetaField.COMPRESSED_SIZE) for meta in metas)
        rows = number(fields, GroupField.NUM_ROWS)
        is_large = stored >= least_bytes or rows >= LEAST_ROWS
        if not rows or not is_large or copied < stored * _LEAST_COPIED:
            return None
        window = group_copies.read_group(self._stream, fields)
        for leaf in leaves:
            group_copies.require_whole_pages(window, metas[leaf])
        return StoredGroup(self._footer, fields, window, self._columns)


def _source(
    by_name: Mapping[str, TopColumn], wanted: TopColumn, mapping: FieldMapping
) -> TopColumn | None:
    """The column of the file that can be copied to ``wanted``."""
    column = None if mapping.source is None else by_name.get(mapping.source.name)
    if column is None or not mapping.is_copy or column.field.nullable != wanted.field.nullable:
        return None
    same = column.field.type.equals(wanted.field.type) and _forms(column) == _forms(wanted)
    return column if same else None


def _forms(column: TopColumn) -> list[tuple[object, ...]]:
    """What decides how a column is stored, but for its name and logical type."""
    first, *nested = column.elements
    names = [element[ElementField.NAME].data for element in nested]
    forms = [tuple(number(each, field, -1) for field in _FORM) for each in (first, *nested)]
    return [tuple(names), *forms]
