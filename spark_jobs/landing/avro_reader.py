"""Avro files as rows. Imported by executors.

Each file is read with the schema it was written with, whose columns become Spark's types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.avro import open_avro
from spark_jobs.contract.sql_text import quote
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.formats.avro.container import AvroDamagedError
from spark_jobs.formats.avro.decoding import stored_values
from spark_jobs.formats.avro.schemas import OTHER_TYPES, AvroSchema, Part
from spark_jobs.landing.avro_values import Converters, MismatchError, column_values, only_name
from spark_jobs.landing.files import FilePart
from spark_jobs.landing.nested_values import BadValueError, Convert
from spark_jobs.landing.records import Column, Problem, RecordLocation, RowBlock
from spark_jobs.landing.rows import Found, Wanted, block_of
from spark_jobs.landing.streams import Bytes

_CHUNK_RECORDS: Final = 10_000
_BUFFER_BYTES: Final = 1024 * 1024
# The limit for one part of a header, and for one block.
_MOST_BYTES: Final = 1024 * 1024 * 1024
_TYPES: Final = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "enum": "STRING",
    "bytes": "BINARY",
    "fixed": "BINARY",
    "date": "DATE",
    "timestamp-millis": "TIMESTAMP",
    "timestamp-micros": "TIMESTAMP",
    "timestamp-nanos": "TIMESTAMP",
    "local-timestamp-millis": "TIMESTAMP_NTZ",
    "local-timestamp-micros": "TIMESTAMP_NTZ",
    "local-timestamp-nanos": "TIMESTAMP_NTZ",
}
_MOST_DIGITS: Final = 38
_MOST_DEPTH: Final = 64


@dataclass(frozen=True, slots=True)
class AvroReader:
    """Reads Avro files. Picklable.

    ``others``: the columns that files may have besides the wanted ones; None: any, also fields.
    """

    wanted: Wanted
    others: tuple[str, ...] | None = None

    @property
    def is_splittable(self) -> bool:
        """Whether several tasks may share the records of a file."""
        return False

    def read(self, filesystem: pafs.FileSystem, part: FilePart) -> Iterator[RowBlock]:
        """The records of a file, block by block.

        Raises:
            CatalogError: SOURCE_UNREADABLE; the file is damaged, lacks a wanted column, has one of
                a type that cannot be converted, or another than it may have. LIBRARY_MISSING;
                fastavro is not installed.
            NotSupportedError: the file's codec or the type of a wanted column is not supported.
            OSError: the file cannot be read.
        """
        name = part.file.name
        path = part.file.path
        with (
            filesystem.open_input_stream(
                path, compression=None, buffer_size=_BUFFER_BYTES
            ) as stream,
            _told(name),
        ):
            file = open_avro(stream, _MOST_BYTES)
            schema = AvroSchema(file.schema)
            columns = [self._column(schema, column, name) for column in self.wanted.read]
            self._require_no_more(schema, name)
            decoder = stored_values(file.schema)
            before = 0
            for block in file.blocks():
                records = decoder.records(block)
                for start in range(0, len(records), _CHUNK_RECORDS):
                    chunk = records[start : start + _CHUNK_RECORDS]
                    yield self._block(chunk, columns, before, frozenset(schema.fields))
                    before += len(chunk)

    def _column(self, schema: AvroSchema, column: Column, file: str) -> tuple[str, Convert]:
        """The column's name in the file, and the converter of its values."""
        try:
            name = only_name(list(schema.fields), column.name)
            return name, Converters(schema, self.wanted.rules).of(schema.fields[name], column.kind)
        except MismatchError as error:
            path = ".".join([column.name, *reversed(error.path)])
            raise CatalogError(
                ErrorCode.SOURCE_UNREADABLE,
                f"{file}: column {path}: {error}",
                "Correct the source's schema, or write the file again with it.",
            ) from None
        except NotSupportedError as error:
            raise NotSupportedError(
                f"{file}: column {column.name} is of a type that Spark has nothing for: "
                f"{error.message}.",
                error.remedy,
            ) from None

    def _require_no_more(self, schema: AvroSchema, file: str) -> None:
        if self.others is None:
            return
        fields = {
            name: part for name, part in schema.fields.items() if name.lower() not in self.others
        }
        wanted = [pa.field(column.name, column.kind) for column in self.wanted.read]
        unread = _unread_field(schema, fields, wanted)
        if unread is not None:
            raise CatalogError(
                ErrorCode.SOURCE_UNREADABLE,
                f"{file} has a column {unread}, which the first file of the source lacks.",
                "Give the source a schema: it says which columns are read.",
            )

    def _block(
        self,
        records: Sequence[dict[str, Any]],
        columns: Sequence[tuple[str, Convert]],
        before: int,
        seen: frozenset[str],
    ) -> RowBlock:
        wanted = self.wanted.read

        def location(row: int) -> tuple[RecordLocation, bytes]:
            number = before + row + 1
            return RecordLocation(None, number), _shown(records[row])

        def problem(index: int, row: int) -> Problem:
            name, convert = columns[index]
            try:
                convert(records[row][name])
            except BadValueError as error:
                return error.problem(wanted[index])
            raise AssertionError(f"{name} is a value in record {before + row + 1}")

        values = [
            column_values([record[name] for record in records], column.kind, convert)
            for column, (name, convert) in zip(wanted, columns, strict=True)
        ]
        return block_of(self.wanted, Found(values, len(records), problem, location), (), seen)


def avro_types(stream: Bytes, name: str) -> dict[str, str]:
    """The columns of a file with their types in Spark's DDL.

    Raises:
        CatalogError: SOURCE_UNREADABLE; it is not an Avro file.
        NotSupportedError: Spark has no type for a column.
    """
    with _told(name):
        schema = AvroSchema(open_avro(stream, _MOST_BYTES).schema)
        types = {}
        for column, part in schema.fields.items():
            try:
                types[column] = _ddl_of(schema, part)
            except NotSupportedError as error:
                raise NotSupportedError(
                    f"{name}: column {column} is of a type that Spark has nothing for: "
                    f"{error.message}.",
                    error.remedy,
                ) from None
        return types


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Turn damage into an error that names the file."""
    try:
        yield
    except AvroDamagedError as error:
        raise CatalogError(
            ErrorCode.SOURCE_UNREADABLE,
            f"{name} cannot be read as Avro: {error}.",
            "Check that the file is whole, and Avro.",
        ) from None


def _shown(record: dict[str, Any]) -> bytes:
    text = json.dumps(record, default=repr, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace")


def _unread_field(
    schema: AvroSchema, fields: Mapping[str, Part], wanted: Iterable[pa.Field]
) -> str | None:
    """The path of a field that the file has and ``wanted`` lacks, in any case; None if none."""
    kinds = {field.name.lower(): field.type for field in wanted}
    for name, part in fields.items():
        kind = kinds.get(name.lower())
        if kind is None:
            return name
        below = _unread_below(schema, part, kind)
        if below is not None:
            return f"{name}.{below}"
    return None


def _unread_below(schema: AvroSchema, part: Part, kind: pa.DataType) -> str | None:
    avro_type = schema.type_of(part)
    if avro_type.name == "record" and pa.types.is_struct(kind):
        return _unread_field(schema, avro_type.fields, kind)
    if avro_type.item is None or not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        return None
    name, item = (
        ("element", kind.value_type) if pa.types.is_list(kind) else ("value", kind.item_type)
    )
    below = _unread_below(schema, avro_type.item, item)
    return None if below is None else f"{name}.{below}"


def _ddl_of(schema: AvroSchema, part: Part, depth: int = 0) -> str:
    """A type in Spark's DDL.

    Raises:
        NotSupportedError: Spark has no such type; the message names it.
    """
    if depth > _MOST_DEPTH:
        raise NotSupportedError("a record that contains itself", OTHER_TYPES)
    avro_type = schema.type_of(part)
    if avro_type.item is not None:
        item = _ddl_of(schema, avro_type.item, depth + 1)
        return f"ARRAY<{item}>" if avro_type.name == "array" else f"MAP<STRING, {item}>"
    if avro_type.name == "record":
        fields = (
            f"{quote(name)}: {_ddl_of(schema, each, depth + 1)}"
            for name, each in avro_type.fields.items()
        )
        return f"STRUCT<{', '.join(fields)}>"
    if avro_type.name == "decimal" and avro_type.precision <= _MOST_DIGITS:
        return f"DECIMAL({avro_type.precision},{avro_type.scale})"
    if avro_type.name not in _TYPES:
        raise NotSupportedError(avro_type.name, OTHER_TYPES)
    return _TYPES[avro_type.name]
