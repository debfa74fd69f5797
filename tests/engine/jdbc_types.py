"""The types of PostgreSQL's and MariaDB's columns: what rows have of them, and what is refused."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

# The declared type, a value as the database has it, the type in Spark and the value there.
Typed = tuple[str, str, str, Any]

_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
_UUID: Final = "11111111-2222-3333-4444-555555555555"
_NOON: Final = datetime(2026, 1, 31, 12, 0, 0, 123456)  # noqa: DTZ001
POSTGRESQL: Final[tuple[Typed, ...]] = (
    ("bool", "true", "boolean", True),
    ("int2", "-32768", "smallint", -32768),
    ("int4", "2147483647", "int", 2147483647),
    ("int8", "-9223372036854775808", "bigint", -9223372036854775808),
    ("oid", "4294967295", "bigint", 4294967295),
    ("float4", "1.5", "float", 1.5),
    ("float8", "'Infinity'", "double", float("inf")),
    ("numeric(12, 3)", "-1.5", "decimal(12,3)", Decimal("-1.500")),
    ("numeric(38, 10)", f"{10**27}.0000000001", "decimal(38,10)", Decimal(f"{10**27}.0000000001")),
    ("numeric(5)", "12345", "decimal(5,0)", Decimal(12345)),
    ("text", "'a\u00e4\U0001f600'", "string", "a\u00e4\U0001f600"),
    ("varchar(5)", "'ab '", "string", "ab "),
    ("char(4)", "'ab'", "string", "ab  "),
    (
        "uuid",
        "'11111111-2222-3333-4444-555555555555'",
        "string",
        "11111111-2222-3333-4444-555555555555",
    ),
    ("json", "'{\"a\":  1.0}'", "string", '{"a":  1.0}'),
    ("jsonb", "'{\"a\": 1}'", "string", '{"a": 1}'),
    ("bytea", "'\\x00ff'", "binary", bytearray(b"\x00\xff")),
    ("date", "'1500-02-28'", "date", date(1500, 2, 28)),
    ("date", "'0001-01-01'", "date", date(1, 1, 1)),
    ("timestamp", "'2026-03-29 02:30:00'", "timestamp_ntz", datetime(2026, 3, 29, 2, 30)),  # noqa: DTZ001
    ("timestamp", "'9999-12-31 23:59:59.999999'", "timestamp_ntz", _LAST),
    ("timestamptz", "'2026-01-31 13:00:00.123456+01'", "timestamp", _NOON),
    ("int4[]", "'{1,NULL}'", "array<int>", [1, None]),
    ("text[]", '\'{"a\\"b",NULL,"x,y"}\'', "array<string>", ['a"b', None, "x,y"]),
    ("float8[]", "'{1.5,-Infinity}'", "array<double>", [1.5, float("-inf")]),
    ("bool[]", "'{}'", "array<boolean>", []),
)
# What no type holds, and which values of others.
POSTGRESQL_REFUSED: Final = (
    *("numeric", "numeric(50, 2)", "money", "time", "timetz", "interval", "inet", "int4range"),
    *("bit(1)", "point", "numeric[]", "date[]"),
)
POSTGRESQL_BAD: Final = (
    *(("date", "'infinity'"), ("date", "'4000-01-01 BC'"), ("timestamp", "'-infinity'")),
    *(("timestamptz", "'infinity'"), ("numeric(5, 1)", "'NaN'"), ("int4[]", "'{{1},{2}}'")),
    ("timestamp", "'10000-01-01'"),
)

MARIADB: Final[tuple[Typed, ...]] = (
    ("bit(1)", "1", "boolean", True),
    ("tinyint", "-128", "tinyint", -128),
    ("tinyint(1)", "2", "tinyint", 2),
    ("tinyint unsigned", "255", "smallint", 255),
    ("smallint", "-32768", "smallint", -32768),
    ("smallint unsigned", "65535", "int", 65535),
    ("mediumint", "-8388608", "int", -8388608),
    ("mediumint unsigned", "16777215", "int", 16777215),
    ("int", "-5", "int", -5),
    ("int unsigned", "4294967295", "bigint", 4294967295),
    ("bigint", "-9", "bigint", -9),
    ("bigint unsigned", "18446744073709551615", "decimal(20,0)", Decimal(18446744073709551615)),
    ("decimal(12, 3)", "-1.5", "decimal(12,3)", Decimal("-1.500")),
    ("decimal(12, 3) unsigned", "1.5", "decimal(12,3)", Decimal("1.500")),
    ("decimal(38, 10)", f"{10**27}.0000000001", "decimal(38,10)", Decimal(f"{10**27}.0000000001")),
    ("decimal(5)", "12345", "decimal(5,0)", Decimal(12345)),
    ("float", "16777217", "float", 16777216.0),
    ("double", "1e300", "double", 1e300),
    ("year", "1999", "int", 1999),
    ("date", "'1500-02-28'", "date", date(1500, 2, 28)),
    ("datetime", "'2026-03-29 02:30:00'", "timestamp_ntz", datetime(2026, 3, 29, 2, 30)),  # noqa: DTZ001
    ("datetime(6)", "'9999-12-31 23:59:59.999999'", "timestamp_ntz", _LAST),
    ("timestamp(6) null", "'2026-01-31 12:00:00.123456'", "timestamp", _NOON),
    ("timestamp null", "'2026-01-31 12:00:00'", "timestamp", _NOON.replace(microsecond=0)),
    ("char(4)", "'ab'", "string", "ab"),
    ("varchar(9)", "'ab '", "string", "ab "),
    ("text", "'a\u00e4\U0001f600'", "string", "a\u00e4\U0001f600"),
    ("longtext", "'x'", "string", "x"),
    ("enum('x', 'y')", "'y'", "string", "y"),
    ("json", "'{\"a\":  1}'", "string", '{"a":  1}'),
    ("blob", "0x00ff", "binary", bytearray(b"\x00\xff")),
    ("varbinary(5)", "'abc'", "binary", bytearray(b"abc")),
    ("binary(2)", "'a'", "binary", bytearray(b"a\x00")),
)
MARIADB_REFUSED: Final = ("time", "bit(5)", "decimal(65, 3)", "geometry", "decimal(39, 0)")
MARIADB_BAD: Final = (
    *(("date", "'0000-00-00'"), ("date", "'2024-00-10'"), ("datetime", "'0000-00-00'")),
    ("timestamp null", "'0000-00-00 00:00:00'"),
)
