"""Values that do not fit their type, nested ones included. Imported by executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from spark_jobs.landing.records import Column, Problem
from spark_jobs.landing.rows import value_problem
from spark_jobs.landing.type_names import type_name

_SHOWN: Final = 1000

# Converts a non-null value to one that Arrow takes as a type, or raises BadValueError.
Convert = Callable[[Any], Any]


class BadValueError(ValueError):
    """``text`` is not a value of ``kind``; ``path`` leads from the value up to its column."""

    def __init__(self, kind: pa.DataType, text: str, reason: str = "", remedy: str = "") -> None:
        super().__init__(reason)
        self.kind = kind
        self.text = text
        self.reason = reason
        self.remedy = remedy
        self.path: list[str] = []

    def problem(self, column: Column) -> Problem:
        """The problem of a value of ``column``."""
        name = ".".join([column.name, *reversed(self.path)])
        expected = column.type_name if self.kind == column.kind else type_name(self.kind)
        text = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}..."
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
        found = value_problem(Column(name, self.kind, expected), text, self.reason)
        return found._replace(remedy=self.remedy or found.remedy)


def part_converter(field: pa.Field, name: str, convert: Convert) -> Convert:
    """``convert`` for a part of a value, which may be None; ``name`` identifies it in the path."""

    def converted(value: Any) -> Any:
        try:
            if value is None:
                return None if field.nullable else _refuse(field.type)
            return convert(value)
        except BadValueError as error:
            error.path.append(name)
            raise

    return converted


def _refuse(kind: pa.DataType) -> Any:
    raise BadValueError(kind, "null", "the type is NOT NULL")
