"""What partition values and column statistics say about a condition, file by file (rules 10, 11).

A condition that Spark has analysed becomes two questions that Spark answers for each file: may it
be TRUE for a row, and must it be TRUE for all rows. Comparisons of a column with a constant become
comparisons of the column's bounds. Parts that read only partition columns are evaluated as they
are. Any other part is unknown: it may hold and need not. Bounds may be wider than the values.
After Iceberg's ``InclusiveMetricsEvaluator`` and ``StrictMetricsEvaluator``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, IntegerType, StructField, StructType

from spark_jobs.engine.analysis.bound_expressions import BoundExpression, bound_condition
from spark_jobs.engine.analysis.catalyst import attribute_ids
from spark_jobs.engine.analysis.expressions import LONG_TERM, Expression
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.pruning.file_truth import Bounds, Truth, compared, is_among, is_null
from spark_jobs.spi.evidence import bounds_decide, cast_keeps_order
from spark_jobs.spi.tables import PlannedFile

_INDEX = "__merge_index"
_IN_LIMIT = 500
_MIRRORED = {
    "EqualTo": "EqualTo",
    "EqualNullSafe": "EqualNullSafe",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
}


@dataclass(frozen=True, slots=True)
class FileTruth:
    """Whether a condition ``may`` be TRUE for a row of a file, and ``must`` be for all rows."""

    may: bool
    must: bool


UNKNOWN = FileTruth(may=True, must=False)


@dataclass(frozen=True, slots=True)
class FileConditions:
    """Evaluates conditions on the target, which they call ``alias``, for the files of a table."""

    spark: SparkSession
    alias: str
    partition_keys: Sequence[str]
    types: Mapping[str, DataType]
    files: Sequence[PlannedFile]
    moment: StatementTime

    def truth(self, conditions: Sequence[Expression]) -> list[FileTruth]:
        """For each file, the truth of all ``conditions`` joined by AND."""
        short = [each for each in conditions if not each.is_long]
        if len(short) < len(conditions):
            # What is not asked about may be FALSE.
            return [FileTruth(each.may, must=False) for each in self.truth(short)]
        columns = sorted(frozenset().union(*(each.target_columns for each in conditions)))
        decidable = [name for name in columns if bounds_decide(self.types[name].simpleString())]
        if not self.files or not conditions or (columns and not decidable):
            return [UNKNOWN] * len(self.files)
        condition = reduce(and_, (each.column for each in conditions))
        facts = [self._facts(file, columns, decidable) for file in self.files]
        distinct = {fact: index for index, fact in enumerate(dict.fromkeys(facts))}
        try:
            found = self._evaluated(condition, columns, decidable, distinct)
        except (PySparkException, Py4JJavaError):
            # An expression that fails here also fails, or is never evaluated, when rows are read.
            return [UNKNOWN] * len(self.files)
        return [found[distinct[fact]] for fact in facts]

    def _facts(
        self, file: PlannedFile, columns: Sequence[str], decidable: Sequence[str]
    ) -> tuple[Any, ...]:
        keys = [
            file.partition[name] if name in decidable and name in self.partition_keys else None
            for name in columns
        ]
        bounds = [fact for name in decidable for fact in self._bounds(file, name)]
        return (*keys, *bounds)

    def _bounds(self, file: PlannedFile, name: str) -> tuple[Any, Any, bool, bool]:
        """Smallest and largest value (None: unknown), and whether values and NULLs may occur."""
        if name in self.partition_keys:
            value = file.partition[name]
            return value, value, value is not None, value is None
        known = file.known(name)
        if known.null_count is None:
            return known.minimum, known.maximum, True, True
        nulls = known.null_count
        return known.minimum, known.maximum, nulls < file.row_count, nulls > 0

    def _evaluated(
        self,
        condition: Column,
        columns: Sequence[str],
        decidable: Sequence[str],
        facts: Mapping[tuple[Any, ...], int],
    ) -> dict[int, FileTruth]:
        fields = [StructField(_INDEX, IntegerType())]
        fields += [StructField(name, self.types[name]) for name in columns]
        for position, name in enumerate(decidable):
            low, high, values, nulls = _bound_names(position)
            fields += [StructField(low, self.types[name]), StructField(high, self.types[name])]
            fields += [StructField(values, BooleanType()), StructField(nulls, BooleanType())]
        rows = [(index, *fact) for fact, index in facts.items()]
        frame = self.spark.createDataFrame(rows, StructType(fields)).alias(self.alias)
        filtered = self.moment.fixed(frame.where(condition.cast("boolean")))
        if set(columns) <= set(self.partition_keys) and columns == decidable:
            holding = {row[0] for row in filtered.select(_INDEX).collect()}
            return {
                index: FileTruth(index in holding, index in holding) for index in facts.values()
            }
        ids = attribute_ids(frame)
        translator = _Translator(
            keys=frozenset(
                key
                for key, name in ids.items()
                if name in decidable and name in self.partition_keys
            ),
            bounds={
                key: _bounds_of(decidable.index(name))
                for key, name in ids.items()
                if name in decidable
            },
        )
        truth = translator.truth_of_parts(bound_condition(filtered))
        answers = frame.select(_INDEX, truth.may_be_true, truth.must_be_true).collect()
        return {index: FileTruth(may, must) for index, may, must in answers}


def _affordable(condition: BoundExpression) -> tuple[list[BoundExpression], bool]:
    """Parts of a condition joined by AND, from the left, and whether they are all of it."""
    chosen: list[BoundExpression] = []
    waiting, left, is_whole = [condition], LONG_TERM, True
    while waiting and left > 0:
        part = waiting.pop()
        if part.leaf_count <= left:
            chosen.append(part)
            left -= part.leaf_count
        elif part.kind == "And" or _is_boolean_cast(part):
            waiting += reversed(part.children)
        else:
            is_whole = False
    return chosen, is_whole and not waiting


def _is_boolean_cast(node: BoundExpression) -> bool:
    return node.kind == "Cast" and node.type_name == "boolean"


def _bound_names(position: int) -> tuple[str, str, str, str]:
    return (
        f"__merge_low_{position}",
        f"__merge_high_{position}",
        f"__merge_values_{position}",
        f"__merge_nulls_{position}",
    )


def _bounds_of(position: int) -> Bounds:
    low, high, values, nulls = map(F.col, _bound_names(position))
    return Bounds(low, high, values, nulls)


@dataclass(frozen=True, slots=True)
class _Translator:
    """Turns Spark's tree of a condition into a truth; ``keys`` are the partition columns' ids."""

    keys: frozenset[int]
    bounds: Mapping[int, Bounds]

    def truth_of_parts(self, condition: BoundExpression) -> Truth:
        """The truth of a condition, of which long parts are unknown."""
        parts, is_whole = _affordable(condition)
        truths = [self.truth(part) for part in parts]
        return reduce(and_, truths if is_whole else [*truths, Truth.unknown()])

    def truth(self, node: BoundExpression) -> Truth:
        kind = node.kind
        if self._is_constant(node):
            return Truth.exactly(node.column)
        if kind == "In":
            return self._membership(node)
        children = node.children
        if kind == "And":
            return self.truth(children[0]) & self.truth(children[1])
        if kind == "Or":
            return self.truth(children[0]) | self.truth(children[1])
        if kind == "Not":
            return ~self.truth(children[0])
        if _is_boolean_cast(node):
            return self.truth(children[0])
        if kind in ("IsNull", "IsNotNull"):
            bounds = self._bounds(children[0])
            found = Truth.unknown() if bounds is None else is_null(bounds)
            return found if kind == "IsNull" else ~found
        if kind == "AttributeReference":
            bounds = self._bounds(node)
            return Truth.unknown() if bounds is None else compared("EqualTo", bounds, F.lit(True))
        if kind in _MIRRORED:
            return self._comparison(kind, *children)
        return Truth.unknown()

    def _comparison(self, kind: str, left: BoundExpression, right: BoundExpression) -> Truth:
        if self._is_constant(left):
            kind, left, right = _MIRRORED[kind], right, left
        bounds = self._bounds(left)
        if bounds is None or not self._is_constant(right) or left.type_name != right.type_name:
            return Truth.unknown()
        return compared(kind, bounds, right.column)

    def _membership(self, node: BoundExpression) -> Truth:
        if node.child_count > _IN_LIMIT:
            return Truth.unknown()
        value, *items = node.children
        bounds = self._bounds(value)
        fits = all(self._is_constant(i) and i.type_name == value.type_name for i in items)
        if bounds is None or not fits:
            return Truth.unknown()
        return is_among(bounds, [item.column for item in items])

    def _is_constant(self, node: BoundExpression) -> bool:
        return node.attributes <= self.keys and not node.has_predicate_subquery

    def _bounds(self, node: BoundExpression) -> Bounds | None:
        """The bounds of a column, also inside casts that keep the order; None for other nodes."""
        if node.is_safe_upcast and cast_keeps_order(node.children[0].type_name, node.type_name):
            inner = self._bounds(node.children[0])
            return None if inner is None else inner.cast(node.type_name)
        return None if node.attribute is None else self.bounds.get(node.attribute)
