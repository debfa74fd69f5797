"""The rows of an Avro file, some blocks at a time. Runs on executors.

Blocks are small, often 64 KB, so that several make a row group. Avro has fewer types than tables,
so that the type that the table records for the file decides what a value means. A file that stores
it otherwise than writers of such tables do is damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from spark_jobs.avro import open_avro
from spark_jobs.datafiles.decoded_rows import DecodedRows
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.avro.container import AvroFile
from spark_jobs.formats.avro.decoding import stored_values
from spark_jobs.formats.avro.schemas import AvroSchema, AvroType, Part

# The limit for one part of a header, and for one block.
_MOST_BYTES: Final = 1024 * 1024 * 1024
_BUFFER_BYTES: Final = 1024 * 1024
# The size in Arrow bytes at which a row group is whole, as in new files.
_GROUP_BYTES: Final = 64 * 1024 * 1024
# Makes an array of decoded values, which may be None; raises ``pa.ArrowInvalid``.
_Build = Callable[[Sequence[Any]], pa.Array]
_PLAIN: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): "date",
}
# Writers mark instants as local timestamps, and timestamps without a time zone as the others, the
# reverse of what Avro specifies. The numbers do not depend on the time zone of the writer.
_TIMESTAMPS: Final = {
    "timestamp-millis": "ms",
    "timestamp-micros": "us",
    "local-timestamp-millis": "ms",
    "local-timestamp-micros": "us",
}
# A DECIMAL of 38 digits needs fewer bytes.
_MOST_DECIMAL_BYTES: Final = 32


def row_count(stream: pa.NativeFile) -> int:
    """The number of rows of the file, by its blocks."""
    return sum(block.records for block in _opened(stream)[0].blocks())


def schema(stream: pa.NativeFile) -> Any:
    """The schema of the file, as JSON data; that of a record.

    Raises:
        pa.ArrowInvalid: it is that of other values.
        AvroDamagedError: the file is damaged.
    """
    return _opened(stream)[0].schema


def row_groups(
    stream: pa.NativeFile, recorded: Iterable[pa.Field], group_bytes: int | None = None
) -> Iterator[DecodedRows]:
    """The rows of the file with the columns ``recorded``.

    A row group has at least ``group_bytes`` in Arrow form, unless it is the last one; None: as many
    as those of new files.

    Raises:
        pa.ArrowInvalid: the file does not hold these columns of its schema.
        AvroDamagedError: the file is damaged.
        CatalogError: LIBRARY_MISSING.
    """
    file, schema = _opened(stream)
    build = ColumnBuilders(schema).record(schema.fields, recorded)
    decoder = stored_values(file.schema)
    least = _GROUP_BYTES if group_bytes is None else group_bytes
    pending, size = [], 0
    for block in file.blocks():
        pending.append(build(decoder.records(block)))
        size += pending[-1].nbytes
        if size >= least:
            yield _group(pending)
            pending, size = [], 0
    if pending:
        yield _group(pending)


def _group(blocks: list[pa.StructArray]) -> DecodedRows:
    rows = pa.concat_arrays(blocks)
    blocks.clear()
    return DecodedRows(pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)]))


def _opened(stream: pa.NativeFile) -> tuple[AvroFile, AvroSchema]:
    # The buffer closes the stream, which cannot be read again.
    buffer = pa.BufferedInputStream(stream, _BUFFER_BYTES)
    try:
        file = open_avro(buffer, _MOST_BYTES)
        return file, AvroSchema(file.schema)
    except NotSupportedError as error:
        raise pa.ArrowInvalid(error.message) from None


@dataclass(frozen=True, slots=True)
class ColumnBuilders:
    """Makes the builders of a file's columns."""

    schema: AvroSchema

    def of(self, part: Part, kind: pa.DataType, path: str) -> _Build:
        """The builder of arrays of ``kind``; those of timestamps have the unit of the file.

        ``path`` is the column's name in errors.

        Raises:
            pa.ArrowInvalid: ``part`` is stored as another type.
        """
        avro_type = self._type_of(part, path)
        build = (
            self._nested(avro_type, kind, path)
            if pa.types.is_nested(kind)
            else _leaf(avro_type, kind)
        )
        if build is None:
            raise pa.ArrowInvalid(
                f"column {path} holds {avro_type.name}, but its schema says {kind}"
            )
        return build

    def record(
        self, stored: Mapping[str, Part], fields: Iterable[pa.Field], prefix: str = ""
    ) -> _Build:
        """The builder of structs with ``fields``, which must be among the ``stored`` ones.

        Raises:
            pa.ArrowInvalid: one of them is not there, or stored as another type.
        """
        parts = []
        for field in fields:
            path = f"{prefix}{field.name}"
            if field.name not in stored:
                raise pa.ArrowInvalid(f"it has no column {path}, which its schema has")
            parts.append((field.name, self.of(stored[field.name], field.type, path)))
        names = [name for name, _ in parts]

        def build(values: Sequence[Any]) -> pa.Array:
            children = [
                child([None if value is None else value[name] for value in values])
                for name, child in parts
            ]
            return pa.StructArray.from_arrays(children, names, mask=_missing(values))

        return build

    def _type_of(self, part: Part, path: str) -> AvroType:
        try:
            return self.schema.type_of(part)
        except NotSupportedError as error:
            raise pa.ArrowInvalid(f"column {path} holds {error.message}") from None

    def _nested(self, found: AvroType, kind: pa.DataType, path: str) -> _Build | None:
        if pa.types.is_struct(kind):
            if found.name != "record":
                return None
            return self.record(found.fields, list(kind), f"{path}.")
        if pa.types.is_map(kind):
            return self._map(found, kind, path)
        if found.name == "array" and found.item is not None:
            return _lists(self.of(found.item, kind.value_type, f"{path}.element"))
        return None

    def _map(self, found: AvroType, kind: pa.MapType, path: str) -> _Build | None:
        """Maps with keys that are no strings are stored as arrays of records."""
        if found.item is None:
            return None
        value = f"{path}.value"
        if found.name == "map" and pa.types.is_string(kind.key_type):
            keys = _leaf(AvroType("string"), kind.key_type)
            items = self.of(found.item, kind.item_type, value)
            return None if keys is None else _maps(keys, items, lambda each: list(each.items()))
        entry = self._type_of(found.item, path)
        if found.name != "array" or entry.nullable or set(entry.fields) != {"key", "value"}:
            return None
        return _maps(
            self.of(entry.fields["key"], kind.key_type, f"{path}.key"),
            self.of(entry.fields["value"], kind.item_type, value),
            lambda each: [(pair["key"], pair["value"]) for pair in each],
        )


def _leaf(found: AvroType, kind: pa.DataType) -> _Build | None:
    if _PLAIN.get(kind) == found.name:
        if pa.types.is_date(kind):
            return lambda values: pa.array(values, pa.int32()).cast(kind)
        return lambda values: pa.array(values, kind)
    if pa.types.is_timestamp(kind) and found.name in _TIMESTAMPS:
        stored = pa.timestamp(_TIMESTAMPS[found.name], kind.tz)
        return lambda values: pa.array(values, pa.int64()).cast(stored)
    if pa.types.is_fixed_size_binary(kind) and found.name == "fixed":
        return lambda values: pa.array(values, kind)
    if pa.types.is_time64(kind) and found.name == "time-micros":
        return lambda values: pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_decimal(kind) and (found.precision, found.scale) == (kind.precision, kind.scale):
        return lambda values: pa.array([_decimal(each, kind.scale) for each in values], kind)
    return None


def _decimal(value: bytes | None, scale: int) -> Decimal | None:
    if value is None:
        return None
    if not 0 < len(value) <= _MOST_DECIMAL_BYTES:
        raise pa.ArrowInvalid(f"a DECIMAL has {len(value)} bytes")
    return Decimal(f"{int.from_bytes(value, 'big', signed=True)}E-{scale}")


def _lists(items: _Build) -> _Build:
    def build(values: Sequence[Any]) -> pa.Array:
        offsets, flat = _flattened(values)
        return pa.ListArray.from_arrays(offsets, items(flat), mask=_missing(values))

    return build


def _maps(keys: _Build, items: _Build, pairs: Callable[[Any], list[tuple[Any, Any]]]) -> _Build:
    def build(values: Sequence[Any]) -> pa.Array:
        lists = [None if value is None else pairs(value) for value in values]
        offsets, flat = _flattened(lists)
        return pa.MapArray.from_arrays(
            offsets,
            keys([key for key, _ in flat]),
            items([item for _, item in flat]),
            mask=_missing(values),
        )

    return build


def _flattened(lists: Sequence[Sequence[Any] | None]) -> tuple[pa.Array, list[Any]]:
    """Offsets of the lists, and their items."""
    offsets = [0]
    items: list[Any] = []
    for each in lists:
        items += each or ()
        offsets.append(len(items))
    return pa.array(offsets, pa.int32()), items


def _missing(values: Sequence[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())
