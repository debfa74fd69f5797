"""Analysed expressions as trees of plain values, for conditions that are evaluated per file.

A node asks the JVM only for what is read of it: the constants of a long IN are never visited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from spark_jobs.engine.analysis.catalyst_nodes import (
    PLAN_EXPRESSION,
    SUBQUERIES,
    class_name,
    contains,
    ids,
    items,
)
from spark_jobs.engine.runtime.java_names import java_class
from spark_jobs.engine.runtime.older_spark import column_of_expression


@dataclass(frozen=True)
class BoundExpression:
    """A node of an expression that was analysed on a frame.

    ``definitions`` are the expressions that its references mean (Spark's ``With``), by id.
    """

    spark: SparkSession
    node: Any
    definitions: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def kind(self) -> str:
        """The name of Spark's class."""
        return class_name(self.node)

    @cached_property
    def child_count(self) -> int:
        """The number of ``children``, without a look at them."""
        return int(self.node.children().size())

    @cached_property
    def leaf_count(self) -> int:
        """The number of columns, constants and the like in it, without a look at them."""
        return int(self.node.collectLeaves().size())

    @cached_property
    def children(self) -> tuple[BoundExpression, ...]:
        """The nodes below this one."""
        children = items(self.node.children())
        return tuple(_bound(self.spark, each, self.definitions) for each in children)

    @cached_property
    def attributes(self) -> frozenset[int]:
        """The ids of the columns that it reads."""
        if self.definitions and self.attribute is None and self.kind not in SUBQUERIES:
            return frozenset().union(*(child.attributes for child in self.children))
        return frozenset(ids(self.node.references()))

    @cached_property
    def attribute(self) -> int | None:
        """The id, if it is a column."""
        is_column = self.kind == "AttributeReference"
        return int(self.node.exprId().id()) if is_column else None

    @cached_property
    def text(self) -> str | None:
        """The value, if it is a string literal."""
        is_text = self.kind == "Literal" and self.type_name == "string"
        value = self.node.value() if is_text else None
        return None if value is None else str(value)

    @cached_property
    def type_name(self) -> str:
        """Its type as Spark writes it."""
        return str(self.node.dataType().simpleString())

    @cached_property
    def is_safe_upcast(self) -> bool:
        """Whether it is a cast that cannot fail and yields no NULL."""
        return self.kind == "Cast" and _is_safe_upcast(self.spark, self.node)

    @cached_property
    def has_predicate_subquery(self) -> bool:
        """Whether it contains a subquery other than an uncorrelated scalar one."""
        if not self.definitions and not contains(self.spark, self.node, PLAN_EXPRESSION):
            return False
        if self.kind in SUBQUERIES and not (self.kind == "ScalarSubquery" and not self.attributes):
            return True
        return any(child.has_predicate_subquery for child in self.children)

    @cached_property
    def column(self) -> Column:
        """The expression as a column of the frame."""
        return column_of_expression(self.spark, self.node)


def bound_value(frame: DataFrame) -> BoundExpression:
    """The only expression in the ``select`` that made ``frame``, as a tree."""
    expression = frame._jdf.queryExecution().analyzed().projectList().apply(0)
    return _bound(frame.sparkSession, expression, {})


def bound_condition(frame: DataFrame) -> BoundExpression:
    """The condition of the ``where`` that made ``frame``, as a tree."""
    condition = frame._jdf.queryExecution().analyzed().condition()
    return _bound(frame.sparkSession, condition, {})


def _bound(spark: SparkSession, node: Any, definitions: Mapping[str, Any]) -> BoundExpression:
    kind = class_name(node)
    if kind == "Between":
        return _bound(spark, node.replacement(), definitions)
    if kind == "With":
        named = {str(each.id()): each.child() for each in items(node.defs())}
        return _bound(spark, node.child(), {**definitions, **named})
    if kind == "CommonExpressionRef":
        return _bound(spark, definitions[str(node.id())], definitions)
    return BoundExpression(spark, node, definitions)


def _is_safe_upcast(spark: SparkSession, cast: Any) -> bool:
    casts = java_class(spark, "org.apache.spark.sql.catalyst.expressions.Cast")
    return bool(casts.canUpCast(cast.child().dataType(), cast.dataType()))
