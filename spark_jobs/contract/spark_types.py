"""Parsing Spark SQL types in DDL form (``struct<a: decimal(10, 2) NOT NULL>``) without a session.

The grammar is that of Spark's ``SqlBaseParser.g4``, rule ``dataType``; the names are those of its
``DataTypeAstBuilder``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from spark_jobs.errors import ErrorCode, RequestError

# The types without elements or fields, and how many arguments they take.
_NO_ARGUMENTS: Final = range(1)
_ARGUMENTS: Final = {
    **dict.fromkeys(("boolean", "tinyint", "byte", "smallint", "short"), _NO_ARGUMENTS),
    **dict.fromkeys(("int", "integer", "bigint", "long", "float", "real"), _NO_ARGUMENTS),
    **dict.fromkeys(("double", "date", "string", "binary", "void"), _NO_ARGUMENTS),
    **dict.fromkeys(("timestamp", "timestamp_ntz", "timestamp_ltz"), _NO_ARGUMENTS),
    **dict.fromkeys(("interval", "variant"), _NO_ARGUMENTS),
    **dict.fromkeys(("geometry", "geography"), range(1, 2)),
    "time": range(2),
    **dict.fromkeys(("char", "character", "varchar"), range(1, 2)),
    **dict.fromkeys(("decimal", "dec", "numeric"), range(3)),
}
_NESTED: Final = ("array", "map", "struct")
_SPELLED: Final = {
    **dict.fromkeys(("char", "character"), "Write CHAR(10), or STRING."),
    "varchar": "Write VARCHAR(10), or STRING.",
    **dict.fromkeys(("decimal", "dec", "numeric"), "Write DECIMAL(10, 2)."),
    "timestamp": "Write TIMESTAMP for an instant, or TIMESTAMP_NTZ for a local time.",
}

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_0-9]+)|(?P<quoted>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.)*')"
    r"|(?P<mark>[<>(),:]))"
)


# The decimal digits that hold any value of a type of whole numbers.
_DIGITS: Final = {
    **dict.fromkeys(("tinyint", "byte"), 3),
    **dict.fromkeys(("smallint", "short"), 5),
    **dict.fromkeys(("int", "integer"), 10),
    **dict.fromkeys(("bigint", "long"), 19),
}
_DECIMAL: Final = ("decimal", "dec", "numeric")


@dataclass(frozen=True, slots=True)
class SparkType:
    """A type: its name in lower case, its numeric arguments, and its fields.

    ``fields`` are the fields of a struct, the field ``element`` of an array, or the fields ``key``
    and ``value`` of a map.
    """

    name: str
    arguments: tuple[int, ...] = ()
    fields: tuple[SparkField, ...] = ()


@dataclass(frozen=True, slots=True)
class SparkField:
    """A field of a struct, or what an array or map contains."""

    name: str
    type: SparkType
    nullable: bool = True
    comment: str | None = None


def parse_type(text: str) -> SparkType:
    """The type that ``text`` describes.

    Raises:
        RequestError: REQUEST_INVALID: it is not a type of Spark SQL.
    """
    parser = _Parser(text)
    parsed = parser.type()
    parser.expect_end()
    return parsed


def require_known_types(schema: str) -> None:
    """Refuse a list of columns that names a type which there is not; Spark tells all else.

    Raises:
        RequestError: REQUEST_INVALID, naming the column.
    """
    parser = None
    try:
        parser = _Parser(f"struct<{schema}>")
        parser.type()
    except RequestError as error:
        if parser is not None and parser.unknown:
            remedy = error.remedy or "Write a type such as BIGINT, DECIMAL(10, 2) or STRING."
            problem = f"{parser.unknown.upper()} is not a type of Spark SQL"
            raise RequestError(error.code, problem, remedy, ("schema",)) from None


def is_wider(given: SparkType, wanted: SparkType) -> bool:
    """Whether ``given`` is another type that holds every value of ``wanted``."""
    if given.name in _DIGITS and wanted.name in _DIGITS:
        return _DIGITS[given.name] > _DIGITS[wanted.name]
    if given.name in _DECIMAL:
        precision, scale = _decimal(given)
        if wanted.name in _DIGITS:
            return precision - scale >= _DIGITS[wanted.name]
        if wanted.name in _DECIMAL:
            digits, behind = _decimal(wanted)
            holds = precision - scale >= digits - behind and scale >= behind
            return holds and (precision, scale) != (digits, behind)
    return given.name == "double" and wanted.name in ("float", "real")


def _decimal(kind: SparkType) -> tuple[int, int]:
    """Precision and scale."""
    precision, scale = (*kind.arguments, 0)[:2] if kind.arguments else (10, 0)
    return precision, scale


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split(text))
        self._next = 0
        self.unknown = ""

    def _split(self, text: str) -> Iterator[tuple[str, str]]:
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._error()
            yield str(match.lastgroup), match.group(str(match.lastgroup))
            position = match.end()

    def _error(self, remedy: str = "") -> RequestError:
        return RequestError(
            ErrorCode.REQUEST_INVALID,
            f"{self._text!r} is not a type of Spark SQL",
            remedy or "Write a type such as BIGINT, DECIMAL(10, 2) or ARRAY<STRING>.",
        )

    def _take(self, kind: str, value: str | None = None) -> str:
        if self._next >= len(self._tokens):
            raise self._error()
        found_kind, token = self._tokens[self._next]
        if found_kind != kind or (value is not None and token.upper() != value):
            raise self._error()
        self._next += 1
        return token

    def _accept(self, kind: str, value: str) -> bool:
        if self._next < len(self._tokens):
            found_kind, found = self._tokens[self._next]
            if found_kind == kind and found.upper() == value:
                self._next += 1
                return True
        return False

    def expect_end(self) -> None:
        if self._next != len(self._tokens):
            raise self._error(_SPELLED.get(self._tokens[0][1].lower(), ""))

    def type(self) -> SparkType:
        name = self._take("name").lower()
        if name == "array":
            return SparkType(name, fields=self._contained("element"))
        if name == "map":
            return SparkType(name, fields=self._contained("key", "value"))
        if name == "struct":
            return SparkType(name, fields=self._struct_fields())
        self._require_known(name)
        arguments = self._arguments()
        if len(arguments) not in _ARGUMENTS[name]:
            raise self._error(_SPELLED.get(name, f"Write {name.upper()} alone."))
        return SparkType(name, arguments)

    def _require_known(self, name: str) -> None:
        if name not in _ARGUMENTS:
            self.unknown = name
            close = get_close_matches(name, [*_ARGUMENTS, *_NESTED], 1)
            raise self._error(f"Did you mean {close[0].upper()}?" if close else "")

    def _contained(self, *names: str) -> tuple[SparkField, ...]:
        self._take("mark", "<")
        fields = []
        for i, name in enumerate(names):
            if i:
                self._take("mark", ",")
            fields.append(SparkField(name, self.type(), nullable=name != "key"))
        self._take("mark", ">")
        return tuple(fields)

    def _arguments(self) -> tuple[int, ...]:
        if not self._accept("mark", "("):
            return ()
        arguments = [self._number()]
        while self._accept("mark", ","):
            arguments.append(self._number())
        self._take("mark", ")")
        return tuple(arguments)

    def _number(self) -> int:
        text = self._take("name")
        if not text.isdecimal():
            raise self._error()
        return int(text)

    def _struct_fields(self) -> tuple[SparkField, ...]:
        self._take("mark", "<")
        fields = [self._field()]
        while self._accept("mark", ","):
            fields.append(self._field())
        self._take("mark", ">")
        return tuple(fields)

    def _field(self) -> SparkField:
        name = self._field_name()
        self._accept("mark", ":")
        kind = self.type()
        nullable = True
        if self._accept("name", "NOT"):
            self._take("name", "NULL")
            nullable = False
        comment = None
        if self._accept("name", "COMMENT"):
            comment = re.sub(r"\\(.)", r"\1", self._take("text")[1:-1])
        return SparkField(name, kind, nullable, comment)

    def _field_name(self) -> str:
        if self._next < len(self._tokens) and self._tokens[self._next][0] == "quoted":
            return self._take("quoted")[1:-1].replace("``", "`")
        return self._take("name")
