"""Analysed expressions as trees of plain values, for conditions that are evaluated per file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from spark_jobs.engine.analysis.catalyst_nodes import SUBQUERIES, class_name, ids, items
from spark_jobs.engine.runtime.java_names import java_class
from spark_jobs.engine.runtime.older_spark import column_of_expression


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """A node of an expression that was analysed on a frame.

    ``kind`` is the name of Spark's class; ``attributes`` are the ids of the columns that it reads.
    ``attribute`` is the id if the node is a column, ``text`` the value if it is a string literal.
    ``type_name`` is its type as Spark writes it.
    ``is_safe_upcast``: it is a cast that cannot fail and yields no NULL.
    ``has_predicate_subquery``: it contains a subquery other than an uncorrelated scalar one.
    """

    kind: str
    children: tuple[BoundExpression, ...]
    attributes: frozenset[int]
    attribute: int | None
    text: str | None
    type_name: str
    is_safe_upcast: bool
    has_predicate_subquery: bool
    column: Column


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
    children = tuple(_bound(spark, child, definitions) for child in items(node.children()))
    is_subquery = kind in SUBQUERIES
    type_name = str(node.dataType().simpleString())
    is_text = kind == "Literal" and type_name == "string" and node.value() is not None
    own = ids(node.references()) if is_subquery or kind == "AttributeReference" else ()
    return BoundExpression(
        kind=kind,
        children=children,
        attributes=frozenset(own).union(*(child.attributes for child in children)),
        attribute=own[0] if kind == "AttributeReference" else None,
        text=str(node.value()) if is_text else None,
        type_name=type_name,
        is_safe_upcast=kind == "Cast" and _is_safe_upcast(spark, node),
        has_predicate_subquery=(is_subquery and not (kind == "ScalarSubquery" and not own))
        or any(child.has_predicate_subquery for child in children),
        column=column_of_expression(spark, node),
    )


def _is_safe_upcast(spark: SparkSession, cast: Any) -> bool:
    casts = java_class(spark, "org.apache.spark.sql.catalyst.expressions.Cast")
    return bool(casts.canUpCast(cast.child().dataType(), cast.dataType()))
