"""Parts of Spark SQL text: names, literals and expressions.

The engine hands Spark its own expressions as text, one ``selectExpr`` per step: building a
``Column`` takes several calls to the JVM for each part of an expression, text takes one for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from spark_jobs.contract.sql_text import quote
from spark_jobs.errors import JobError, to_marker

# The end of a literal, an escape, and a variable (${name}).
_MEANINGFUL: Final = frozenset("'\\$")


def embedded(text: str) -> str:
    """An expression that users wrote, as a part of another; it may end in a comment."""
    # A comment that ends in a backslash goes on in the next line.
    return f"(\n{text}\n\n)"


def named(text: str, name: str) -> str:
    """``text AS name``, for ``selectExpr``."""
    return f"{text} AS {quote(name)}"


def text_literal(text: str) -> str:
    """A string literal that means the same whatever the session's parser does with strings."""
    if text.isprintable() and not _MEANINGFUL.intersection(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def failing(problem: JobError) -> str:
    """An expression that fails with ``problem``, which says nothing of the row."""
    return f"raise_error({text_literal(to_marker(problem))})"


def type_text(kind: DataType) -> str:
    """A type as CAST takes it."""
    if isinstance(kind, StructType):
        fields = (
            f"{quote(each.name)}: {type_text(each.dataType)}{'' if each.nullable else ' NOT NULL'}"
            for each in kind
        )
        return f"STRUCT<{', '.join(fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{type_text(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{type_text(kind.keyType)}, {type_text(kind.valueType)}>"
    return kind.simpleString()


def null_of(kind: DataType) -> str:
    """NULL as a value of a type."""
    return f"CAST(NULL AS {type_text(kind)})"


def column_of(alias: str, column: str) -> str:
    """``alias.column``, both quoted."""
    return f"{quote(alias)}.{quote(column)}"


def qualify(text: str, positions: Iterable[int], alias: str) -> str:
    """``text`` with ``alias.`` in front of the references that start at ``positions``."""
    for position in sorted(positions, reverse=True):
        text = f"{text[:position]}{quote(alias)}.{text[position:]}"
    return text


def find_name(name: str, names: Iterable[str]) -> str | None:
    """The first of ``names`` that equals ``name``, ignoring case; None if there is none."""
    lowered = name.lower()
    return next((each for each in names if each.lower() == lowered), None)
