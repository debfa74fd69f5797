"""What others make of a random JSON file: Python's json module, DuckDB and pyarrow."""

from __future__ import annotations

import base64
import codecs
import json
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.json as pajson

from tests.landing.casts import cast
from tests.landing.json_files import JsonFile, Type
from tests.landing.reading import REFUSED

# A record that is no row, in a list of rows.
BAD = ("bad",)
_SPECIAL = {
    "NaN": "nan",
    **dict.fromkeys(("INF", "Infinity", "+Infinity"), "inf"),
    **dict.fromkeys(("-INF", "-Infinity"), "-inf"),
}
DUCKDB_TYPES = {"BIGINT": "BIGINT", "STRING": "VARCHAR", "BOOLEAN": "BOOLEAN", "DATE": "DATE"}
ARROW_TYPES = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BOOLEAN")


class Number(str):
    """A number's text."""


class Pairs(list[tuple[str, Any]]):
    """An object's members."""


@dataclass(frozen=True)
class AsWritten:
    """The text of an object or an array, of which no more is known than what it means."""

    value: Any


def loaded(text: str) -> Any:
    """A JSON text with numbers as they are written; raises ``ValueError``."""
    try:
        return json.loads(
            text,
            object_pairs_hook=Pairs,
            parse_int=Number,
            parse_float=Number,
            parse_constant=Number,
        )
    except RecursionError:
        raise ValueError(text[:100]) from None


def by_python(file: JsonFile) -> list[tuple[Any, ...]] | None:
    """The rows of a file of lines by the json module; None: it is not of its encoding."""
    try:
        data = file.data.decode(file.encoding).encode() if file.encoding != "utf-8" else file.data
    except UnicodeError:
        return None
    data = data.removeprefix(b"\xef\xbb\xbf")
    rows: list[tuple[Any, ...]] = []
    for line in re.split(rb"\r\n|\n|\r", data):
        if not line.strip(b" \t"):
            continue
        try:
            value = loaded(line.decode())
        except ValueError:
            rows.append(BAD)
            continue
        is_array = isinstance(value, list) and not isinstance(value, Pairs)
        rows += [_row(file, each) for each in (value if is_array else [value])]
    return rows


def by_python_whole(file: JsonFile) -> list[tuple[Any, ...]] | None:
    """The rows of a file that is one JSON value; None: it is none, or not of its encoding."""
    try:
        text = file.data.decode(file.encoding).removeprefix("\ufeff")
        value = loaded(text)
    except ValueError:
        return None
    is_array = isinstance(value, list) and not isinstance(value, Pairs)
    return [_row(file, each) for each in (value if is_array else [value])]


def _row(file: JsonFile, record: Any) -> tuple[Any, ...]:
    if not isinstance(record, Pairs):
        return BAD
    row = []
    for name, kind in file.columns:
        found = [value for key, value in record if key.lower() == name.lower()]
        if len(found) > 1:
            return BAD
        row.append(_value(found[0], kind, file.zone) if found else None)
    return BAD if REFUSED in row else tuple(row)


def _value(value: Any, kind: Type, zone: str) -> Any:
    if value is None:
        return None
    if kind.parts:
        found = _nested(value, kind, zone)
        parts = found.values() if isinstance(found, dict) else found
        flat = [each for part in parts for each in (part if isinstance(part, tuple) else [part])]
        return REFUSED if REFUSED in flat else found
    if kind.name == "STRING":
        return _text(value)
    if isinstance(value, bool) and kind.name == "BOOLEAN":
        return value
    is_number = isinstance(value, Number)
    if not isinstance(value, str) or (is_number and kind.name in ("BOOLEAN", "BINARY")):
        return REFUSED
    if kind.name == "BINARY":
        return _bytes(value)
    text = value.strip(" \t\n\r\v\f")
    if kind.name in ("FLOAT", "DOUBLE") and text in (*_SPECIAL, "Inf", "-Inf"):
        return float(_SPECIAL[text]) if text in _SPECIAL else REFUSED
    return cast(str(value), kind.name, zone)


def _text(value: Any) -> Any:
    if isinstance(value, list):
        return AsWritten(value)
    if isinstance(value, bool):
        return str(value).lower()
    is_whole = not any("\ud800" <= character <= "\udfff" for character in value)
    return str(value) if is_whole else REFUSED


def _nested(value: Any, kind: Type, zone: str) -> Any:
    """A list, a list of pairs, or a dictionary; with ``REFUSED`` if it is not one."""
    if kind.name == "ARRAY":
        if not isinstance(value, list) or isinstance(value, Pairs):
            return [REFUSED]
        return [_value(each, kind.parts[0][1], zone) for each in value]
    if not isinstance(value, Pairs):
        return [REFUSED]
    if kind.name == "MAP":
        key, part = (each for _, each in kind.parts)
        pairs = [(_value(name, key, zone), _value(each, part, zone)) for name, each in value]
        keys = [name for name, _ in pairs]
        return pairs if len(set(keys)) == len(keys) else [REFUSED]
    found: dict[str, Any] = {}
    for name, part in kind.parts:
        same = [each for key, each in value if key.lower() == name.lower()]
        found[name] = REFUSED if len(same) > 1 else _value(same[0], part, zone) if same else None
    return found


def _bytes(text: str) -> Any:
    if not re.fullmatch(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", text):
        return REFUSED
    found = base64.b64decode(text)
    return found if base64.b64encode(found).decode() == text else REFUSED


def is_same(found: Any, expected: Any) -> bool:
    """Whether a value that a reader found is the one that Python expects."""
    if isinstance(expected, AsWritten):
        return (
            isinstance(found, str)
            and found[:1] + found[-1:] in ("[]", "{}")
            and repr(loaded(found)) == repr(expected.value)
        )
    if isinstance(expected, dict):
        return isinstance(found, dict) and is_same(list(found.items()), list(expected.items()))
    if isinstance(expected, list | tuple):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(expected)
            and all(map(is_same, found, expected))
        )
    if isinstance(expected, float):
        return repr(found) == repr(expected)
    return bool(found == expected) and isinstance(found, bool) == isinstance(expected, bool)


def by_duckdb(file: JsonFile, folder: Path) -> list[tuple[Any, ...]] | None:
    """Rows of a file of lines by DuckDB; None: it cannot judge them."""
    if not _is_plain(file):
        return None
    path = folder / "duckdb.json"
    path.write_bytes(file.data.removeprefix(codecs.BOM_UTF8))
    columns = {name: DUCKDB_TYPES[kind.name] for name, kind in file.columns}
    query = (
        "SELECT * FROM read_json($path, format='newline_delimited', records='true', "
        "columns=$columns)"
    )
    with duckdb.connect() as connection:
        try:
            return connection.execute(query, {"path": str(path), "columns": columns}).fetchall()
        except duckdb.Error:
            return None


def by_pyarrow(file: JsonFile) -> list[tuple[Any, ...]] | None:
    """Rows of a file of lines by pyarrow; None: it cannot judge them."""
    if not _is_plain(file):
        return None
    data = file.data.removeprefix(codecs.BOM_UTF8)
    schema = pa.schema([(name, kind.kind) for name, kind in file.columns])
    try:
        table = pajson.read_json(
            pa.BufferReader(data),
            pajson.ReadOptions(use_threads=False, block_size=len(data) + 1),
            pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    return [tuple(row.values()) for row in table.to_pylist()]


def judged_by(types: Collection[str], file: JsonFile) -> tuple[list[int], JsonFile]:
    """Which columns are of ``types``, and the file with no other ones wanted."""
    indexes = [i for i, (_, kind) in enumerate(file.columns) if kind.name in types]
    return indexes, replace(file, columns=tuple(file.columns[i] for i in indexes))


def _is_plain(file: JsonFile) -> bool:
    """Whether there are records, each an object on a line that names columns as they are.

    Others know names in other cases as other names, and the text of a value not as it is written.
    """
    if not file.columns or file.encoding != "utf-8" or b"\r" in file.data.replace(b"\r\n", b""):
        return False
    types = {name.lower(): (name, kind.name) for name, kind in file.columns}
    try:
        lines = file.data.decode().removeprefix("\ufeff").split("\n")
        records = [loaded(line) for line in lines if line.strip()]
    except ValueError:
        return False
    if not records or not all(isinstance(record, Pairs) for record in records):
        return False
    for name, value in (member for record in records for member in record):
        spelled, kind = types.get(name.lower(), (name, ""))
        if spelled != name or (kind == "STRING" and value is not None and type(value) is not str):
            return False
    return True
