"""Checks the tables that get rows beside the target, as far as metadata tells what fits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from airflow_provider_merge.checks.type_families import family_of
from spark_jobs.contract.side_outputs import table_text
from spark_jobs.errors import AnalysisError, ErrorCode

_WORD: Final = re.compile(r"\w+")
# Spark lacks TIMESTAMP(9) and BINARY(16), and maybe parts of nested types.
_UNSURE: Final = re.compile(r"(?:array|map|row|struct)\b|timestamp\([789]\)|binary\(")
_SAME: Final = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "varchar": "string",
    "char": "string",
    "character": "string",
    "text": "string",
    "varbinary": "binary",
    "bytes": "binary",
    "timestamp_ntz": "timestamp",
    "timestamp_ltz": "timestamp",
}


def nullable_types(columns: Mapping[str, str]) -> dict[str, tuple[str, bool]]:
    """The types of columns without NOT NULL, and whether they can be NULL."""
    return {name: _nullable_type(kind) for name, kind in columns.items()}


def _nullable_type(kind: str) -> tuple[str, bool]:
    *plain, last_but_one, last = ["", "", *kind.split()]
    if (last_but_one.upper(), last.upper()) != ("NOT", "NULL"):
        return kind.strip(), True
    return " ".join(plain).strip(), False


def require_late_columns(table: str, columns: Mapping[str, str], source: Mapping[str, str]) -> None:
    """Check that ``columns`` of a table take every row of a source, as far as types tell.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, TYPE_MISMATCH.
    """
    known = {name.lower(): each for name, each in nullable_types(columns).items()}
    given = {name: kind for name, (kind, _) in nullable_types(source).items()}
    fits = (
        f"A table that fits: {table_text(table, given)}"
        if all(given.values())
        else ("A table that fits has the columns of the source, each of which can be NULL.")
    )
    for name, kind in given.items():
        word = _plain(kind)
        if kind and word is None:
            continue  # Spark may lack the type, and leave the column out.
        if name.lower() not in known:
            problem = f"quarantine_table: {table} has no column {name}, which the source has."
            remedy = f"Add it with AlterTableOperator. {fits}"
            raise AnalysisError(ErrorCode.COLUMN_NOT_FOUND, problem, remedy)
        column_type, nullable = known[name.lower()]
        differs = None not in (word, _plain(column_type)) and word != _plain(column_type)
        if differs or "CHAR(" in column_type.upper() or not nullable:
            null = "" if nullable else " NOT NULL"
            problem = (
                f"quarantine_table: column {name} of {table} is {column_type}{null}, and has to "
                f"take every {kind or 'value'} of the source, and NULL."
            )
            raise AnalysisError(ErrorCode.TYPE_MISMATCH, problem, fits)


def _plain(kind: str) -> str | None:
    """The word for a type without length, the same for all its names; None: Spark may lack it."""
    word = _WORD.match(kind.strip().lower())
    if word is None or family_of(kind) is None or _UNSURE.match(kind.strip().lower()):
        return None
    return _SAME.get(word[0], word[0])
