"""Which types of Parquet and ORC files Spark reads as which of its own without losing anything.

Spark itself reads an INT as a TINYINT without its upper bits, and what does not fit from an ORC
file as NULL.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructType

from spark_jobs.engine.source.file_columns import FIXED_BINARY, NANOSECONDS, UNKNOWN, Types

# Parquet stores all of them alike.
_SMALL: Final = ("TINYINT", "SMALLINT", "INT")
_WIDER: Final = {
    "TINYINT": ("SMALLINT", "INT"),
    "SMALLINT": ("INT",),
    "FLOAT": ("DOUBLE",),
    "STRING": ("BINARY",),
    "BINARY": ("STRING",),
    FIXED_BINARY: ("BINARY",),
    "UNSIGNED TINYINT": ("SMALLINT", "INT"),
    "UNSIGNED SMALLINT": ("INT",),
    "UNSIGNED INT": ("BIGINT",),
    "UNSIGNED BIGINT": ("DECIMAL(20,0)",),
    f"TIMESTAMP{NANOSECONDS}": ("BIGINT",),
    f"TIMESTAMP_NTZ{NANOSECONDS}": ("BIGINT",),
    "VOID": (*_SMALL, "DATE"),
}
# Spark reads these since version 4.
_WIDER_SINCE_4: Final = {
    **dict.fromkeys((*_SMALL, "UNSIGNED TINYINT", "UNSIGNED SMALLINT"), ("BIGINT", "DOUBLE")),
    "VOID": ("BIGINT", "DOUBLE"),
    "DATE": ("TIMESTAMP_NTZ",),
}
_COMPARED: Final = frozenset(
    {
        *(*_SMALL, "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "STRING", "BINARY", "VOID"),
        *("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
    }
)
_ONLY_PARQUET: Final = (("BINARY", "STRING"), ("DATE", "TIMESTAMP_NTZ"))
_MOST_DIGITS: Final = 38
# The digits that a decimal needs before its point.
_DIGITS: Final = {**dict.fromkeys(_SMALL, 10), "BIGINT": 20}


def type_names(schema: StructType) -> dict[str, str]:
    """The types of all columns and their parts, by their paths as in ``file_types``.

    ``UNKNOWN`` ones are not compared with those of files, nor are parts that files have of them.
    """
    return dict(_fields(schema, ""))


def is_read_as(found: str, wanted: str, *, is_orc: bool, is_spark_4: bool) -> bool:
    """Whether Spark reads all values of a file's type ``found``, as they are, as ``wanted``."""
    if UNKNOWN in (found, wanted) or found == wanted:
        return True
    if is_orc and (found, wanted) == ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return True
    if is_orc and (found, wanted) in _ONLY_PARQUET:
        return False
    if wanted in _WIDER.get(found, ()):
        return True
    if not (is_spark_4 or is_orc):
        return False
    if wanted.startswith("DECIMAL"):
        return _holds(wanted, found)
    return wanted in _WIDER_SINCE_4.get(found, ())


def is_too_long(found: str) -> bool:
    """Whether a type of a file is a decimal with more digits than Spark's have."""
    return found.startswith("DECIMAL") and _digits(found)[0] > _MOST_DIGITS


def _fields(struct: StructType, above: str) -> Types:
    for field in struct:
        yield from _named(f"{above}{field.name.lower()}", field.dataType)


def _named(path: str, kind: DataType) -> Types:
    if isinstance(kind, StructType):
        yield path, "STRUCT"
        yield from _fields(kind, f"{path}.")
    elif isinstance(kind, ArrayType):
        yield path, "ARRAY"
        yield from _named(f"{path}.element", kind.elementType)
    elif isinstance(kind, MapType):
        yield path, "MAP"
        yield from _named(f"{path}.key", kind.keyType)
        yield from _named(f"{path}.value", kind.valueType)
    elif isinstance(kind, DecimalType):
        yield path, f"DECIMAL({kind.precision},{kind.scale})"
    else:
        # A collation follows the name.
        name = kind.simpleString().upper().partition(" ")[0]
        yield path, name if name in _COMPARED else UNKNOWN


def _holds(decimal: str, found: str) -> bool:
    precision, scale = _digits(decimal)
    if found.startswith("DECIMAL"):
        other_precision, other_scale = _digits(found)
        return scale >= other_scale and precision - scale >= other_precision - other_scale
    return found in _DIGITS and precision - scale >= _DIGITS[found]


def _digits(decimal: str) -> tuple[int, int]:
    precision, scale = decimal.removeprefix("DECIMAL(").removesuffix(")").split(",")
    return int(precision), int(scale)
