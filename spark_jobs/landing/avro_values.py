"""Converts Avro values to the wanted types, without loss. Imported by executors."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from spark_jobs.formats.avro.schemas import AvroSchema, AvroType, Part
from spark_jobs.landing.nested_values import BadValueError, Convert, part_converter
from spark_jobs.landing.records import NotAValue
from spark_jobs.landing.type_names import type_name
from spark_jobs.landing.values import Parsed, TextRules, exact_decimal, value_of

_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
_FIRST_DAY: Final = dt.date.min.toordinal() - _EPOCH
_LAST_DAY: Final = dt.date.max.toordinal() - _EPOCH
_DAY: Final = 24 * 60 * 60 * 1_000_000
_BEYOND: Final = "it lies beyond the years 1 to 9999"
_WHOLE: Final = ("int", "long")
_TEXTS: Final = ("string", "enum")
# A DECIMAL of 38 digits needs fewer bytes.
_MOST_DECIMAL_BYTES: Final = 32


class MismatchError(ValueError):
    """A column, or a part of one, whose values can never have the wanted type."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: list[str] = []


@dataclass(frozen=True, slots=True)
class Converters:
    """Makes converters from a file's types to the wanted types."""

    schema: AvroSchema
    rules: TextRules

    def of(self, part: Part, kind: pa.DataType) -> Convert:
        """The converter of non-null values of ``part`` to values that Arrow takes as ``kind``.

        The converter raises ``BadValueError``.

        Raises:
            MismatchError: no value of ``part`` can be a ``kind``.
            NotSupportedError: a union of several types.
        """
        avro_type = self.schema.type_of(part)
        if avro_type.name == "null":
            return _nothing
        if avro_type.item is not None:
            return self._collection(avro_type.name, avro_type.item, kind)
        if avro_type.name == "record" and pa.types.is_struct(kind):
            return self._struct(avro_type, kind)
        convert = self._scalar(avro_type, kind)
        if convert is None:
            raise MismatchError(f"it is {_shown(avro_type)} in the file, not {type_name(kind)}")
        return convert

    def _collection(self, name: str, item: Part, kind: pa.DataType) -> Convert:
        if name == "array" and pa.types.is_list(kind):
            convert = self._part(item, kind.value_field, "element")
            return lambda values: [convert(each) for each in values]
        if name == "map" and pa.types.is_map(kind):
            key = self._scalar(AvroType("string"), kind.key_type)
            if key is not None:
                to_key = part_converter(kind.key_field, "key", key)
                to_value = self._part(item, kind.item_field, "value")
                return lambda values: _map(kind, values, to_key, to_value)
        raise MismatchError(f"it is {name} in the file, not {type_name(kind)}")

    def _struct(self, found: AvroType, kind: pa.DataType) -> Convert:
        parts = []
        for field in kind:
            try:
                spelled = only_name(list(found.fields), field.name)
            except MismatchError as error:
                error.path.append(field.name)
                raise
            convert = self._part(found.fields[spelled], field, field.name)
            parts.append((field.name, spelled, convert))
        return lambda values: {name: convert(values[key]) for name, key, convert in parts}

    def _part(self, part: Part, field: pa.Field, name: str) -> Convert:
        try:
            return part_converter(field, name, self.of(part, field.type))
        except MismatchError as error:
            error.path.append(name)
            raise

    def _scalar(self, found: AvroType, kind: pa.DataType) -> Convert | None:
        if found.name in _TEXTS and not (pa.types.is_nested(kind) or pa.types.is_binary(kind)):
            return _same if pa.types.is_string(kind) else lambda text: _read(text, kind, self.rules)
        if found.name in _WHOLE:
            return _of_whole(kind)
        if found.name in ("float", "double") and pa.types.is_floating(kind):
            exact = found.name == "float" or kind == pa.float64()
            return _same if exact else lambda value: _as_float(value, kind)
        if found.name == "decimal" and pa.types.is_decimal(kind):
            return lambda value: _decimal(value, found.scale, kind)
        if found.name == "date" and pa.types.is_date(kind):
            return lambda value: _within(value, 1, kind)
        if "timestamp" in found.name and pa.types.is_timestamp(kind):
            is_local = found.name.startswith("local")
            return None if is_local == bool(kind.tz) else _time_converter(found.name, kind)
        same = {"boolean": pa.types.is_boolean, "bytes": pa.types.is_binary}
        same["fixed"] = same["bytes"]
        return _same if found.name in same and same[found.name](kind) else None


def only_name(names: Sequence[str], wanted: str) -> str:
    """The one of ``names`` that equals ``wanted``, ignoring case.

    Raises:
        MismatchError: no name does, or more than one.
    """
    matching = [name for name in names if name.lower() == wanted.lower()]
    if len(matching) == 1:
        return matching[0]
    raise MismatchError(
        f"the file has {' and '.join(matching)}" if matching else "the file has no such column"
    )


def column_values(cells: Sequence[Any], kind: pa.DataType, convert: Convert) -> Parsed:
    """The values of a column, and a mask of the bad ones."""
    try:
        values = [None if cell is None else convert(cell) for cell in cells]
        return Parsed(pa.array(values, kind), None)
    except BadValueError:
        pass
    values = []
    bad = np.zeros(len(cells), dtype=np.bool_)
    for row, cell in enumerate(cells):
        try:
            values.append(None if cell is None else convert(cell))
        except BadValueError:
            values.append(None)
            bad[row] = True
    return Parsed(pa.array(values, kind), bad)


def _shown(found: AvroType) -> str:
    return f"decimal({found.precision},{found.scale})" if found.precision else found.name


def _same(value: Any) -> Any:
    return value


def _nothing(value: Any) -> Any:
    raise AssertionError(f"null has no value {value}")


def _map(kind: pa.DataType, values: Any, to_key: Convert, to_value: Convert) -> Any:
    entries = {to_key(key): to_value(each) for key, each in values.items()}
    if len(entries) < len(values):
        raise BadValueError(kind, str(values), "two keys are the same value")
    return list(entries.items())


def _read(text: str, kind: pa.DataType, rules: TextRules) -> Any:
    try:
        return value_of(text, kind, rules)
    except NotAValue as error:
        raise BadValueError(kind, text, str(error)) from None


def _of_whole(kind: pa.DataType) -> Convert | None:
    if pa.types.is_integer(kind):
        most = 1 << (kind.bit_width - 1)
        return lambda value: value if -most <= value < most else _refuse(kind, value)
    if pa.types.is_decimal(kind):
        return lambda value: _exact(str(value), kind)
    if pa.types.is_floating(kind):
        return lambda value: _as_float(value, kind)
    return None


def _as_float(value: float, kind: pa.DataType) -> float:
    """A number that FLOAT or DOUBLE represents exactly."""
    try:
        represented: float = struct.unpack("<f", struct.pack("<f", value))[0]
        represented = represented if kind == pa.float32() else float(value)
    except OverflowError:
        represented = math.inf
    if represented != value and not math.isnan(value):
        _refuse(kind, value, "it is rounded")
    return represented


def _decimal(value: bytes, scale: int, kind: pa.DataType) -> Decimal:
    if len(value) > _MOST_DECIMAL_BYTES:
        _refuse(kind, value.hex())
    return _exact(f"{int.from_bytes(value, 'big', signed=True)}E-{scale}", kind)


def _exact(text: str, kind: pa.DataType) -> Decimal:
    try:
        return exact_decimal(text, kind)
    except NotAValue as error:
        raise BadValueError(kind, text, str(error)) from None


def _time_converter(name: str, kind: pa.DataType) -> Convert:
    if name.endswith("millis"):
        return lambda value: _within(value * 1000, _DAY, kind)
    if name.endswith("micros"):
        return lambda value: _within(value, _DAY, kind)

    def of_nanoseconds(value: int) -> int:
        if value % 1000:
            _refuse(kind, value, "it has parts of a microsecond")
        return _within(value // 1000, _DAY, kind)

    return of_nanoseconds


def _within(value: int, per_day: int, kind: pa.DataType) -> int:
    if not _FIRST_DAY <= value // per_day <= _LAST_DAY:
        _refuse(kind, value, _BEYOND)
    return value


def _refuse(kind: pa.DataType, value: object, reason: str = "") -> Any:
    raise BadValueError(kind, str(value), reason)
