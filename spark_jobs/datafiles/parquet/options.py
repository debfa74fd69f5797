"""The options for writing a parquet file: those of the file it replaces, or of a new file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

# A dictionary-encoded chunk with fewer bytes per value has few distinct values; keeping its indices
# avoids expanding them to strings and hashing those again.
_LOW_CARDINALITY_BYTES = 2.5

_SAMPLED_ROWS: Final = 4096
# The share of distinct values in the sample below which a column gets a dictionary.
_DISTINCT_SHARE: Final = 0.75


# Codecs by the names that writers of tables give them, in pyarrow's names.
CODECS: Final = {each: each for each in ("zstd", "snappy", "gzip", "lz4", "brotli", "none")} | {
    "uncompressed": "none"
}


@dataclass(frozen=True, slots=True)
class Compression:
    """A codec, by pyarrow's name (``zstd``, ``snappy``, ``gzip``, ``none`` …), and its level."""

    codec: str = "zstd"
    level: int | None = 1


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """How values are laid out in a file.

    ``dictionary``: True, or the dotted paths of the leaf columns that have a dictionary.
    ``decimal_as_integer``: decimals of up to 18 digits are stored as INT32 or INT64; otherwise all
    decimals are fixed-length bytes.
    """

    dictionary: bool | tuple[str, ...]
    decimal_as_integer: bool

    @classmethod
    def for_new_file(cls) -> ParquetOptions:
        """The options of the Java writers of table formats, so that every engine reads the file."""
        return cls(dictionary=True, decimal_as_integer=True)

    @classmethod
    def for_rows(cls, rows: pa.Table) -> ParquetOptions:
        """Those of a new file that begins with ``rows``: unlike Java's, without dictionaries of
        columns whose values hardly repeat, which take time and room and are dropped in the end.
        """
        if rows.num_rows <= _SAMPLED_ROWS:
            return cls.for_new_file()
        sample = rows.slice((rows.num_rows - _SAMPLED_ROWS) // 2, _SAMPLED_ROWS)
        paths = [
            path
            for field, column in zip(sample.schema, sample.columns, strict=True)
            if pa.types.is_nested(field.type) or _repeats(column)
            for path in _leaf_paths(field)
        ]
        return cls(dictionary=tuple(paths), decimal_as_integer=True)

    @classmethod
    def like(cls, metadata: pq.FileMetaData) -> ParquetOptions:
        """The options of an existing file without INT96 timestamps."""
        leaves = [metadata.schema.column(i) for i in range(metadata.num_columns)]
        decimals = [leaf for leaf in leaves if leaf.logical_type.type == "DECIMAL"]
        return cls(
            dictionary=_dictionary_paths(metadata),
            decimal_as_integer=any(leaf.physical_type.startswith("INT") for leaf in decimals),
        )

    def writer_arguments(self, compression: Compression) -> dict[str, Any]:
        """The arguments for ``pq.ParquetWriter``.

        The Arrow schema is not stored in the file, just as Java writers store none: readers then
        see only the parquet types, not that a column happened to be read as a dictionary here.
        """
        dictionary = self.dictionary if self.dictionary is True else list(self.dictionary or ())
        return {
            "compression": compression.codec,
            "compression_level": compression.level,
            "use_dictionary": dictionary,
            "store_decimal_as_integer": self.decimal_as_integer,
            "store_schema": False,
        }


def _repeats(column: pa.ChunkedArray) -> bool:
    return len(column.unique()) < _DISTINCT_SHARE * len(column)


def _leaf_paths(field: pa.Field, prefix: str = "") -> Iterator[str]:
    """The paths of a column's leaves as pyarrow writes them."""
    path, kind = f"{prefix}{field.name}", field.type
    if pa.types.is_struct(kind):
        for child in kind:
            yield from _leaf_paths(child, f"{path}.")
    elif pa.types.is_map(kind):
        yield from _leaf_paths(kind.key_field.with_name("key"), f"{path}.key_value.")
        yield from _leaf_paths(kind.item_field.with_name("value"), f"{path}.key_value.")
    elif pa.types.is_list(kind):
        yield from _leaf_paths(kind.value_field.with_name("element"), f"{path}.list.")
    else:
        yield path


def low_cardinality_columns(metadata: pq.FileMetaData, schema: pa.Schema) -> list[str]:
    """Top-level string and binary columns that are cheapest to read and write as dictionaries."""
    if metadata.num_row_groups == 0:
        return []
    group = metadata.row_group(0)
    names = []
    for i in range(group.num_columns):
        chunk = group.column(i)
        small = chunk.total_uncompressed_size < _LOW_CARDINALITY_BYTES * chunk.num_values
        if chunk.has_dictionary_page and small and _is_text(schema, chunk.path_in_schema):
            names.append(chunk.path_in_schema)
    return names


def _is_text(schema: pa.Schema, name: str) -> bool:
    index = schema.get_field_index(name)
    return index >= 0 and schema.field(index).type in (pa.string(), pa.binary())


def _dictionary_paths(metadata: pq.FileMetaData) -> tuple[str, ...]:
    paths = set()
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for i in range(group.num_columns):
            if group.column(i).has_dictionary_page:
                paths.add(group.column(i).path_in_schema)
    return tuple(sorted(paths))
