"""Converts JSON values to values of a type, without loss. Imported by executors.

A JSON string is read like a text in any other file. The JSON type of a value counts too: ``1`` is
neither a BOOLEAN nor a DATE, ``1.0`` and ``true`` are not INTs, and a STRING keeps the text of any
value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from spark_jobs.landing.base64_texts import from_base64
from spark_jobs.landing.json_records import Members, NotJsonError, Number, located
from spark_jobs.landing.nested_values import BadValueError, Convert, part_converter
from spark_jobs.landing.records import Column, NotAValue, Problem, shown
from spark_jobs.landing.rows import value_problem
from spark_jobs.landing.values import Parsed, TextRules, parsed, value_of

_EPOCH_REMEDY: Final = (
    "Declare the column as BIGINT, and use timestamp_seconds or timestamp_millis in a query over "
    "the source."
)


class NeedsTextError(ValueError):
    """The text of an object or an array is needed, but was not kept when it was read."""


def json_text(value: Any) -> str:
    """A string's text, or any other JSON value as written in the file.

    Raises:
        NeedsTextError: the value was not read by ``located``.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if not hasattr(value, "span"):
            raise NeedsTextError
        text, start, end = value.span
        return str(text[start:end])
    return {True: "true", False: "false", None: "null"}[value]


def json_rules(rules: TextRules) -> TextRules:
    """``rules`` with the names that Spark uses in JSON for NaN and the infinities."""
    return replace(rules, nan="NaN", positive_inf="INF", negative_inf="-INF")


def column_values(
    cells: Sequence[Any], column: Column, rules: TextRules, text: Callable[[int], str]
) -> Parsed:
    """The values of a column; ``text(row)`` is the text of the record that has the cell."""
    plain = _plain_values(cells, column.kind, rules)
    if plain is not None:
        return plain
    convert = converter(column.kind, rules)
    values: list[Any] = []
    bad = np.zeros(len(cells), dtype=np.bool_)
    for row, cell in enumerate(cells):
        try:
            try:
                values.append(None if cell is None else convert(cell))
            except NeedsTextError:
                values.append(convert(_cell(text(row), column)))
        except (BadValueError, NotJsonError):
            values.append(None)
            bad[row] = True
    return Parsed(pa.array(values, column.kind), bad if bad.any() else None)


def _plain_values(cells: Sequence[Any], kind: pa.DataType, rules: TextRules) -> Parsed | None:
    """The values, converted by Arrow; None unless the cells are what a text file could hold."""
    cell_types = set(map(type, cells)) - {type(None)}
    if pa.types.is_boolean(kind) and cell_types <= {bool}:
        return Parsed(pa.array(cells, kind), None)
    has_texts = pa.types.is_temporal(kind) or pa.types.is_boolean(kind)
    if not (cell_types <= {str} if has_texts else _is_scalar(kind) and cell_types <= {str, Number}):
        return None
    try:
        return parsed(pa.array(cells, pa.string()), kind, rules)
    except UnicodeEncodeError:
        return None


def problem_of(text: str, column: Column, rules: TextRules) -> Problem:
    """What is wrong with the value of ``column`` in a record."""
    try:
        converter(column.kind, rules)(_cell(text, column))
    except BadValueError as error:
        return error.problem(column)
    except NotJsonError as error:
        return value_problem(column, "", str(error))
    return value_problem(column, "", "")


def _cell(text: str, column: Column) -> Any:
    members, _ = located(text)
    return next(value for name, value in members if name.lower() == column.name.lower())


def converter(kind: pa.DataType, rules: TextRules) -> Convert:
    """The converter of non-null JSON values to values that Arrow takes as ``kind``.

    The converter raises ``BadValueError`` or ``NeedsTextError``.
    """
    if pa.types.is_list(kind):
        return partial(_array, kind, _part(kind.value_field, "element", rules))
    if pa.types.is_map(kind):
        values = _part(kind.item_field, "value", rules)
        return partial(_map, kind, _part(kind.key_field, "key", rules), values)
    if pa.types.is_struct(kind):
        parts = {each.name.lower(): (each.name, _part(each, each.name, rules)) for each in kind}
        required = [each.name for each in kind if not each.nullable]
        return partial(_struct, kind, parts, required)
    if pa.types.is_string(kind):
        return partial(_string, kind)
    if pa.types.is_binary(kind):
        return partial(_binary, kind)
    return partial(_scalar, kind, rules)


def _part(field: pa.Field, name: str, rules: TextRules) -> Convert:
    return part_converter(field, name, converter(field.type, rules))


def _bad(value: Any, kind: pa.DataType, reason: str = "", remedy: str = "") -> BadValueError:
    return BadValueError(kind, json_text(value), reason, remedy)


def _array(kind: pa.DataType, convert: Convert, value: Any) -> list[Any]:
    if not isinstance(value, list) or isinstance(value, Members):
        raise _bad(value, kind)
    return [convert(each) for each in value]


def _map(
    kind: pa.DataType, convert_key: Convert, convert: Convert, value: Any
) -> list[tuple[Any, Any]]:
    if not isinstance(value, Members):
        raise _bad(value, kind)
    entries = {}
    for name, each in value:
        key = convert_key(name)
        if key in entries:
            raise _bad(value, kind, f"it names twice the key {shown(name)}")
        entries[key] = convert(each)
    return list(entries.items())


def _struct(
    kind: pa.DataType, parts: dict[str, tuple[str, Convert]], required: list[str], value: Any
) -> dict[str, Any]:
    if not isinstance(value, Members):
        raise _bad(value, kind)
    converted: dict[str, Any] = {}
    for spelled, each in value:
        name, convert = parts.get(spelled.lower(), ("", None))
        if convert is None:
            continue
        if name in converted:
            raise _bad(value, kind, f"it names twice the field {name}")
        converted[name] = convert(each)
    for name in required:
        if name not in converted:
            raise _bad(value, kind, f"it lacks the field {name}, which is NOT NULL")
    return converted


def _string(kind: pa.DataType, value: Any) -> str:
    text = json_text(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _bad(value, kind, "it has half of a surrogate pair") from None
    return text


def _binary(kind: pa.DataType, value: Any) -> bytes:
    if type(value) is not str:
        raise _bad(value, kind, "it is not a text")
    decoded = from_base64(value)
    if decoded is None:
        raise _bad(value, kind, "it is not Base64")
    return decoded


def _scalar(kind: pa.DataType, rules: TextRules, value: Any) -> Any:
    if isinstance(value, bool) and pa.types.is_boolean(kind):
        return value
    if isinstance(value, Number) and pa.types.is_temporal(kind):
        raise _bad(value, kind, "it is a number", _EPOCH_REMEDY)
    if not isinstance(value, str) or (isinstance(value, Number) and pa.types.is_boolean(kind)):
        raise _bad(value, kind)
    try:
        return value_of(value, kind, rules)
    except NotAValue as error:
        raise _bad(value, kind, str(error)) from None


def _is_scalar(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind))
