"""Primary keys in statements: what an UPDATE may assign, and which INSERT rows are new."""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql.types import DataType, IntegralType

from spark_jobs.engine.analysis.analyzed import AnalyzedCase, AnalyzedMerge
from spark_jobs.engine.analysis.expressions import Expression, JoinKey
from spark_jobs.engine.runtime.sql_text import split_name
from spark_jobs.spi import rows
from spark_jobs.spi.writes import InsertedKeys

_NAME: Final = re.compile(r"(?:`(?:[^`]|``)*`|\w+)(?:\.(?:`(?:[^`]|``)*`|\w+))?")
# The types of whole numbers, from the narrowest.
_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")


def keeps_key(merge: AnalyzedMerge, column: str, value: Expression) -> bool:
    """Whether ``value`` is certainly what ``column``, a key column, has already in a joined row."""
    if not value.source_columns:
        return value.target_columns == {column} and _is_column(value, column)
    key = _join_key(merge, column)
    return key is not None and _is_joined(key, value, merge.stored_types[column])


def inserted_keys(merge: AnalyzedMerge) -> InsertedKeys:
    """What the INSERT rows of a statement find in the table.

    They are new if ON compares every key column with what INSERT stores in it: no target row
    equals such a source row.
    """
    inserts = [case for case in merge.cases if case.operation == rows.INSERT]
    is_new = all(_inserts_new_keys(merge, case) for case in inserts)
    return InsertedKeys.NEW if is_new else InsertedKeys.CHECKED


def _inserts_new_keys(merge: AnalyzedMerge, case: AnalyzedCase) -> bool:
    return all(
        (key := _join_key(merge, column)) is not None
        and _is_joined(key, case.values[column], merge.stored_types[column])
        for column in merge.table.key_columns
    )


def _join_key(merge: AnalyzedMerge, column: str) -> JoinKey | None:
    keys = merge.read_set.join_keys
    return next((key for key in keys if key.target_column == column and key.source_column), None)


def _is_joined(key: JoinKey, value: Expression, stored: DataType) -> bool:
    """Whether ``value`` is the source column of ``key`` and is stored as it is."""
    name = key.source_column
    is_column = value.source_columns == {name} and _is_column(value, name or "")
    return is_column and not value.target_columns and _stays_equal(value.type, stored)


def _is_column(value: Expression, name: str) -> bool:
    text = value.text.strip()
    return bool(_NAME.fullmatch(text)) and split_name(text)[-1].lower() == name.lower()


def _stays_equal(given: DataType, stored: DataType) -> bool:
    """Whether storing keeps values as ON compared them: lengths and scales may change them."""
    kinds = given.simpleString(), stored.simpleString()
    if isinstance(given, IntegralType) and isinstance(stored, IntegralType):
        return _WHOLE.index(kinds[0]) <= _WHOLE.index(kinds[1])
    return kinds[0] == kinds[1] and not kinds[0].startswith(("char", "varchar"))
