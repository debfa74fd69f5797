"""Analysed expressions: their text, what they read, and the type of their value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, NullType

from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.runtime.older_spark import column_of_expression

# Bounds of files are not asked about longer terms: a comparison costs some 10 ms.
LONG_TERM: Final = 600


@dataclass(frozen=True, slots=True)
class Side:
    """One input of the join as expressions see it: its alias and an empty frame of its columns.

    ``char_lengths``: the lengths of its CHAR columns. ``added``: columns that the statement adds; a
    bare name that the other side has too does not mean them. ``opaque``: the types of the columns
    that no expression may use, by name.
    """

    alias: str
    frame: DataFrame
    char_lengths: Mapping[str, int] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    opaque: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Names of the side's columns."""
        return self.frame.columns


@dataclass(frozen=True, slots=True)
class LongExpression:
    """The ``tree`` that Spark's parser made of ``text``, with sets of constants for long lists.

    ``name`` stands for it in other texts. ``has_many_terms``: it is many terms, joined by AND.
    """

    spark: SparkSession
    text: str
    name: str
    tree: Any
    has_many_terms: bool

    @property
    def column(self) -> Column:
        """The expression as a column of any frame that has its columns under their names."""
        return column_of_expression(self.spark, self.tree)


@dataclass(frozen=True, slots=True)
class Expression:
    """An analysed expression.

    ``text`` is evaluated on the joined frame. ``target_columns`` and ``source_columns`` are what it
    reads; ``type`` is the type of its value. ``source_column``: the source's column, if it is just
    one. ``subquery_columns`` are the columns that its subqueries read, by view name; only WHERE and
    the values of UPDATE may have subqueries. ``given_fields``: the paths of the fields that an
    assignment to fields gives values; the other fields of the struct stay as they are.
    ``is_long``: it is one term with more than ``LONG_TERM`` constants and columns. ``long``: its
    tree, if it has so many, in one term or several.
    """

    text: str
    target_columns: frozenset[str]
    source_columns: frozenset[str]
    type: DataType
    deterministic: bool
    source_column: str | None = None
    subquery_columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    given_fields: tuple[tuple[str, ...], ...] = ()
    is_long: bool = False
    long: LongExpression | None = None

    def __post_init__(self) -> None:
        """Refuse a tree of another text."""
        if self.long is not None and self.long.text != self.text:
            raise ValueError("the tree belongs to another expression")

    @property
    def column(self) -> Column:
        """The expression as a column of the joined frame."""
        return F.expr(self.text) if self.long is None else self.long.column

    @property
    def short_text(self) -> str:
        """What stands for it in texts of ``long_expressions.selected``."""
        return self.text if self.long is None else quote(self.long.name)

    def copied_column(self, wanted: DataType) -> str | None:
        """The source's column whose values it stores as they are in one declared as ``wanted``.

        None if it is anything else, or if store assignment may change or refuse a value.
        """
        return self.source_column if self.type == wanted else None


NULL: Final = Expression("NULL", frozenset(), frozenset(), NullType(), deterministic=True)


@dataclass(frozen=True, slots=True)
class JoinKey:
    """An equality between a target column of type ``type`` and an expression of the source.

    ``source_column`` is the source's column if the expression is just a column, else None.
    """

    target_column: str
    type: DataType
    source: Expression
    source_column: str | None = None


def subquery_columns(expressions: Iterable[Expression]) -> dict[str, frozenset[str]]:
    """The columns that the subqueries in ``expressions`` read, by view name."""
    columns_by_view: dict[str, frozenset[str]] = {}
    for each in expressions:
        for view, columns in each.subquery_columns.items():
            columns_by_view[view] = columns_by_view.get(view, frozenset()) | columns
    return columns_by_view
