"""How each type of a database's columns is read without loss, or why it is not. Driver only.

The database turns a value into a whole number, a text or bytes, which no driver and no time zone
changes; Spark makes the value of it again, and refuses those that it cannot hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# Of days and microseconds since 1970: the years 1 to 9999.
_DAYS: Final = (-719_162, 2_932_896)
_MICROS: Final = (-62_135_596_800_000_000, 253_402_300_799_999_999)
_NO_DAY: Final = 2**31 - 1
_NO_TIME: Final = 2**63 - 1
_MOST_DIGITS: Final = 38


@dataclass(frozen=True, slots=True)
class RemoteColumn:
    """A column of a query: its driver's names for it, and ``java.sql.Types``."""

    name: str
    type_name: str
    type_code: int
    precision: int
    scale: int
    is_signed: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """How a column is read: ``{c}`` is it in the database's expression ``remote``.

    ``local`` makes the value of what came, ``{v}``, in Spark. ``bad``: which of those Spark does
    not hold; None: it holds all. ``told`` says what they are; ``is_shown``: what came
    tells the value.
    """

    remote: str = "{c}"
    local: str = "{v}"
    bad: str | None = None
    told: str = ""
    is_shown: bool = False


def _plain(kind: str, remote: str = "{c}") -> Reading:
    return Reading(remote, f"CAST({{v}} AS {kind})")


def _parsed(kind: str, remote: str, told: str) -> Reading:
    """A text that the database wrote, as a value of a type."""
    cast = f"try_cast({{v}} AS {kind})"
    return Reading(remote, cast, f"{cast} IS NULL", told, is_shown=True)


def _outside(limits: tuple[int, int]) -> str:
    return f"{{v}} < {limits[0]}L OR {{v}} > {limits[1]}L"


_TIME_TOLD: Final = "infinity, or a time outside of the years 1 to 9999"
_EPOCH_MICROS: Final = (
    "CASE WHEN isfinite({c}) THEN CAST(EXTRACT(EPOCH FROM {c}) * 1000000 AS bigint) "
    f"WHEN {{c}} IS NOT NULL THEN {_NO_TIME} END"
)
_SINCE_1970: Final = (
    "TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, "
    "CAST(CAST({v} AS DECIMAL(20, 0)) / 1000000BD AS DECIMAL(18, 6)))"
)
_POSTGRESQL: Final[Mapping[str, Reading]] = {
    "bool": _plain("BOOLEAN"),
    "int2": _plain("SMALLINT"),
    "smallserial": _plain("SMALLINT"),
    "int4": _plain("INT"),
    "serial": _plain("INT"),
    "int8": _plain("BIGINT"),
    "bigserial": _plain("BIGINT"),
    "oid": _plain("BIGINT", "CAST({c} AS bigint)"),
    "float4": _plain("FLOAT", "CAST({c} AS float8)"),
    "float8": _plain("DOUBLE"),
    "bytea": _plain("BINARY"),
    # A cast to text would take its blanks away.
    "bpchar": _plain("STRING", "CASE WHEN {c} IS NOT NULL THEN concat({c}) END"),
    **{
        each: _plain("STRING", "CAST({c} AS text)")
        for each in ("text", "varchar", "name", "citext", "uuid", "json", "jsonb", "xml")
    },
    "date": Reading(
        f"CASE WHEN isfinite({{c}}) THEN {{c}} - DATE '1970-01-01' "
        f"WHEN {{c}} IS NOT NULL THEN {_NO_DAY} END",
        "date_from_unix_date(CAST({v} AS INT))",
        _outside(_DAYS),
        "infinity, or a day outside of the years 1 to 9999",
    ),
    "timestamp": Reading(_EPOCH_MICROS, _SINCE_1970, _outside(_MICROS), _TIME_TOLD),
    "timestamptz": Reading(_EPOCH_MICROS, "timestamp_micros({v})", _outside(_MICROS), _TIME_TOLD),
}
_ARRAYS: Final = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INT",
    "int8": "BIGINT",
    "float8": "DOUBLE",
    **dict.fromkeys(("text", "varchar", "uuid"), "STRING"),
}
# java.sql.Types
_CHAR: Final = 1
_CHARACTERS: Final = (12, -1, -15, -9, -16)
_BYTES: Final = (-2, -3, -4, 2004)
_INTEGERS: Final = {"TINYINT": 1, "SMALLINT": 2, "MEDIUMINT": 3, "INT": 4, "INTEGER": 4}
_OF_BYTES: Final = {1: "TINYINT", 2: "SMALLINT", 3: "INT", 4: "INT"}
_UNSIGNED: Final = {1: "SMALLINT", 2: "INT", 3: "INT", 4: "BIGINT"}


def postgresql_reading(column: RemoteColumn) -> Reading | None:
    """How a column of PostgreSQL is read; None: no type holds it."""
    name = column.type_name.lower()
    if name == "numeric":
        fits = 0 < column.precision <= _MOST_DIGITS and 0 <= column.scale <= column.precision
        kind = f"DECIMAL({column.precision}, {column.scale})"
        return _parsed(kind, "CAST({c} AS text)", "no number") if fits else None
    if name.startswith("_") and name[1:] in _ARRAYS:
        kind = f"ARRAY<{_ARRAYS[name[1:]]}>"
        return Reading(
            "CAST(array_to_json({c}) AS text)",
            f"from_json({{v}}, '{kind}', map('mode', 'FAILFAST'))",
            "{v} LIKE '[[%'",
            "an array of arrays",
        )
    return _POSTGRESQL.get(name)


def mysql_reading(column: RemoteColumn) -> Reading | None:
    """How a column of MySQL or MariaDB is read; None: no type holds it."""
    name = column.type_name.upper()
    plain, is_unsigned = name.removesuffix(" UNSIGNED"), name.endswith(" UNSIGNED")
    is_unsigned = is_unsigned or not column.is_signed
    if plain in _INTEGERS:
        size = _INTEGERS[plain]
        if is_unsigned:
            return _plain(_UNSIGNED[size], "CAST({c} AS SIGNED)")
        return _plain(_OF_BYTES[size])
    if plain == "BIGINT":
        wide = _plain("DECIMAL(20, 0)", "CAST({c} AS CHAR)")
        return wide if is_unsigned else _plain("BIGINT")
    return _mysql_value(plain, column)


def _mysql_value(name: str, column: RemoteColumn) -> Reading | None:
    zero = "a zero date"
    if name == "DECIMAL":
        fits = 0 < column.precision <= _MOST_DIGITS and 0 <= column.scale <= column.precision
        kind = f"DECIMAL({column.precision}, {column.scale})"
        return _parsed(kind, "CAST({c} AS CHAR)", "no number") if fits else None
    if name == "BIT":
        one = _plain("BOOLEAN", "CAST({c} AS SIGNED)")
        return one if column.precision <= 1 else None
    readings = {
        # Its text has six digits.
        "FLOAT": _plain("FLOAT", "({c} + 0e0)"),
        "DOUBLE": _plain("DOUBLE"),
        "YEAR": _plain("INT", "CAST({c} AS SIGNED)"),
        "DATE": _parsed("DATE", "CAST({c} AS CHAR)", zero),
        "DATETIME": _parsed("TIMESTAMP_NTZ", "CAST({c} AS CHAR)", zero),
        "TIMESTAMP": Reading(
            "CASE WHEN {c} = 0 THEN '0' ELSE CAST(UNIX_TIMESTAMP({c}) AS CHAR) END",
            "timestamp_micros(CAST(CAST({v} AS DECIMAL(20, 6)) * 1000000 AS BIGINT))",
            "CAST({v} AS DECIMAL(20, 6)) = 0",
            zero,
        ),
    }
    if name in readings:
        return readings[name]
    if name in ("TIME", "GEOMETRY", "NULL"):
        return None
    if column.type_code == _CHAR:
        # Spark would pad the text of a CHAR, which the database does not.
        return _plain("STRING", "CONCAT({c}, '')")
    if column.type_code in _CHARACTERS:
        return _plain("STRING")
    return _plain("BINARY") if column.type_code in _BYTES else None
