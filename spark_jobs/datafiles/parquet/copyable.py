"""Which row groups of a parquet file can be copied into a new file of the table as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

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
_FORM: Final = (
    ElementField.TYPE,
    ElementField.TYPE_LENGTH,
    ElementField.REPETITION,
    ElementField.NUM_CHILDREN,
)


class CopyableFile:
    """An open file whose columns are stored as in a new file of the table."""

    def __init__(self, stream: pa.NativeFile, footer: Footer) -> None:
        self._stream = stream
        self._footer = footer

    @classmethod
    def of(cls, stream: pa.NativeFile, form: Footer) -> CopyableFile | None:
        """The file, if its columns are stored as in ``form``; ids and the root may differ."""
        try:
            footer = footers.read_footer(stream)
        except NotSpliceableError:
            return None
        created_by = footer.fields.get(FileField.CREATED_BY)
        if created_by is not None and _KNOWN_BY_NAME.match(created_by.data):
            return None
        return cls(stream, footer) if _same_form(footer.columns, form.columns) else None

    def read(self, number_of_group: int, least_bytes: int) -> StoredGroup | None:
        """A row group that looks sound, if it is large: of so many bytes, or of many rows."""
        fields = self._footer.row_groups[number_of_group]
        try:
            return self._read(fields, least_bytes)
        except (NotSpliceableError, *MISUNDERSTOOD):
            return None

    def _read(self, fields: Struct, least_bytes: int) -> StoredGroup | None:
        metas = [footers.meta_of(chunk) for chunk in footers.chunks_of(fields)]
        stored = sum(number(meta, MetaField.COMPRESSED_SIZE) for meta in metas)
        rows = number(fields, GroupField.NUM_ROWS)
        if not rows or (stored < least_bytes and rows < LEAST_ROWS):
            return None
        window = group_copies.read_group(self._stream, fields)
        for meta in metas:
            group_copies.require_whole_pages(window, meta)
        return StoredGroup(self._footer, fields, window)


def _same_form(found: Sequence[TopColumn], wanted: Sequence[TopColumn]) -> bool:
    if len(found) != len(wanted):
        return False
    return all(
        a.field.equals(b.field) and list(map(_form, a.elements)) == list(map(_form, b.elements))
        for a, b in zip(found, wanted, strict=True)
    )


def _form(element: Struct) -> tuple[object, ...]:
    """What decides how an element is stored, but for its logical type, which the field has."""
    return (element[ElementField.NAME].data, *(number(element, each, -1) for each in _FORM))
