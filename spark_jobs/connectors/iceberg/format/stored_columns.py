"""The columns of a data file as pyarrow reads them, with Iceberg's field ids. Runs on executors.

Follows the Iceberg specification, "Appendix A: Format-specific Requirements". ORC has the ids in
attributes of types, Avro in properties of its schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.schema import FIELD_ID
from spark_jobs.datafiles import orc
from spark_jobs.datafiles.avro import row_groups as avro
from spark_jobs.datafiles.file_formats import is_avro, is_orc
from spark_jobs.datafiles.parquet.footer import readable_metadata

_ORC_ID: Final = b"iceberg.id"
_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL: Final[Mapping[str, pa.DataType]] = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms"),
    "timestamp-micros": pa.timestamp("us"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_MOST_DIGITS: Final = 38
_KEY_AND_VALUE: Final = 2


def stored_columns(path: str, stream: pa.NativeFile) -> pa.Schema:
    """The columns of the open file at ``path``, of any format; their ids are as in parquet.

    Raises:
        pa.ArrowInvalid, AvroDamagedError: the file is damaged.
    """
    if is_orc(path):
        return pa.schema([_of_orc(each) for each in orc.schema(stream)])
    if is_avro(path):
        return pa.schema(_AvroColumns(avro.schema(stream)).fields)
    return readable_metadata(stream).schema.to_arrow_schema()


def _of_orc(field: pa.Field) -> pa.Field:
    kind, number = field.type, (field.metadata or {}).get(_ORC_ID)
    if number is not None:
        _require_id(field.name, number.decode(errors="replace"))
    if pa.types.is_struct(kind):
        kind = pa.struct([_of_orc(kind.field(i)) for i in range(kind.num_fields)])
    elif pa.types.is_map(kind):
        kind = pa.map_(_of_orc(kind.key_field), _of_orc(kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(_of_orc(kind.value_field))
    return pa.field(
        field.name, kind, field.nullable, None if number is None else {FIELD_ID: number}
    )


def _require_id(name: str, number: str) -> None:
    if not (number.isascii() and number.isdecimal()):
        raise pa.ArrowInvalid(f"column {name} has the field id {number[:100]!r}")


class _AvroColumns:
    """The fields of a schema, which is valid."""

    def __init__(self, raw: Any) -> None:
        self._named: dict[str, Any] = {}
        self._open = set[str]()
        self.fields = self._record(raw)

    def _record(self, raw: Mapping[str, Any]) -> list[pa.Field]:
        return [
            self._field(each["name"], each["type"], each.get("field-id")) for each in raw["fields"]
        ]

    def _field(self, name: str, raw: Any, number: Any) -> pa.Field:
        if number is not None:
            _require_id(name, str(number))
        metadata = None if number is None else {FIELD_ID: str(number).encode()}
        kind = self._type(raw)
        is_nullable = (isinstance(raw, list) and "null" in raw) or pa.types.is_null(kind)
        return pa.field(name, kind, is_nullable, metadata)

    def _type(self, raw: Any) -> pa.DataType:
        """The type of values; of those that tables do not have, that of NULL."""
        if isinstance(raw, list):
            some = [each for each in raw if each != "null"]
            return self._type(some[0]) if len(some) == 1 else pa.null()
        if isinstance(raw, str):
            return _PLAIN[raw] if raw in _PLAIN else self._of_name(raw)
        kind, logical = raw["type"], raw.get("logicalType")
        if not isinstance(kind, str):
            return self._type(kind)
        if "name" in raw:
            for name in (raw["name"], f"{raw.get('namespace', '')}.{raw['name']}"):
                self._named[name] = raw
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return _decimal(raw.get("precision"), raw.get("scale", 0))
        if logical in _LOGICAL:
            return _LOGICAL[logical]
        if kind == "fixed":
            return pa.binary(raw["size"])
        return self._nested(kind, raw) or _PLAIN.get(kind) or self._of_name(kind)

    def _of_name(self, name: str) -> pa.DataType:
        """The type that has the name; tables have none that contains itself."""
        if name in self._open or name not in self._named:
            return pa.null()
        return self._type(self._named[name])

    def _nested(self, kind: str, raw: Mapping[str, Any]) -> pa.DataType | None:
        if kind == "record":
            return self._struct(raw)
        if kind == "map":
            key = self._field("key", "string", raw.get("key-id"))
            return pa.map_(key, self._field("value", raw["values"], raw.get("value-id")))
        if kind == "array" and raw.get("logicalType") == "map":
            entry = self._type(raw["items"])
            if not pa.types.is_struct(entry) or entry.num_fields != _KEY_AND_VALUE:
                return pa.null()
            return pa.map_(entry.field(0).with_nullable(nullable=False), entry.field(1))
        if kind == "array":
            return pa.list_(self._field("element", raw["items"], raw.get("element-id")))
        return None

    def _struct(self, raw: Mapping[str, Any]) -> pa.DataType:
        names = {raw["name"], f"{raw.get('namespace', '')}.{raw['name']}"} - self._open
        self._open |= names
        found = pa.struct(self._record(raw))
        self._open -= names
        return found


def _decimal(precision: Any, scale: Any) -> pa.DataType:
    are_numbers = type(precision) is int and type(scale) is int
    fits = are_numbers and 0 <= scale <= precision and 0 < precision <= _MOST_DIGITS
    return pa.decimal128(precision, scale) if fits else pa.null()
