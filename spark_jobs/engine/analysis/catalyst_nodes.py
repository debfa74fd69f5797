"""Nodes of Catalyst's expressions and plans, and the comparisons in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pyspark.sql import SparkSession

from spark_jobs.engine.runtime.java_names import java_constant

PLAN_EXPRESSIONS: Final = ("ScalarSubquery", "Exists", "ListQuery", "LateralSubquery")
SUBQUERIES: Final = (*PLAN_EXPRESSIONS, "InSubquery")
# Members of Spark's TreePattern: what a tree contains is known without a walk.
PLAN_EXPRESSION: Final = "PLAN_EXPRESSION"
LAMBDA_FUNCTION: Final = "LAMBDA_FUNCTION"
UNRESOLVED_FUNCTION: Final = "UNRESOLVED_FUNCTION"
CURRENT_LIKE: Final = "CURRENT_LIKE"
_PATTERNS: Final = "org.apache.spark.sql.catalyst.trees.TreePattern"
# The metadata key under which Spark keeps the declared type of a STRING column.
DECLARED_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_CHAR: Final = re.compile(r"char\((\d+)\)")
# How Spark writes an attribute: its name and id, and L for BIGINT.
_ATTRIBUTE: Final = re.compile(r"(?P<name>.*)#(?P<id>\d+)L?", re.DOTALL)
_BETWEEN: Final = "\0,\0"
# How Spark writes an unresolved name; a string literal may look like one.
_UNRESOLVED: Final = "'"
_COMPARISONS: Final = (
    "EqualTo",
    "EqualNullSafe",
    "LessThan",
    "LessThanOrEqual",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
)


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a comparison: a column with id and name, a string literal, or neither.

    ``char_length``: the length of a column that Spark knows as CHAR.
    """

    attribute: int | None = None
    name: str = ""
    char_length: int | None = None
    text: str | None = None


@lru_cache(1)
def sql_parser(spark: SparkSession) -> Any:
    """The parser of a session, looked up once: each of many expressions asks it."""
    return spark._jsparkSession.sessionState().sqlParser()


def char_length(declared: str) -> int | None:
    """The length of the type ``char(n)``; None for any other type."""
    found = _CHAR.fullmatch(declared)
    return int(found[1]) if found else None


def comparisons(
    node: Any, definitions: Mapping[str, Any] | None = None
) -> Iterator[tuple[Operand, ...]]:
    """The operands of each comparison in an analysed expression and its subqueries."""
    known = definitions or {}
    kind = class_name(node)
    if kind == "Between":
        yield from comparisons(node.replacement(), known)
        return
    if kind == "With":
        named = {str(each.id()): each.child() for each in items(node.defs())}
        yield from comparisons(node.child(), {**known, **named})
        return
    if kind in _COMPARISONS:
        yield tuple(_operand(each, known) for each in items(node.children()))
    elif kind == "InSubquery":
        found = items(node.query().plan().output())
        for value, column in zip(items(node.values()), found, strict=False):
            yield _operand(value, known), _operand(column, known)
    if kind in PLAN_EXPRESSIONS:
        yield from _compared_in_plan(node.plan())
    for child in items(node.children()):
        yield from comparisons(child, known)


def _compared_in_plan(plan: Any) -> Iterator[tuple[Operand, ...]]:
    if class_name(plan) == "View":
        return
    for expression in items(plan.expressions()):
        yield from comparisons(expression)
    for child in items(plan.children()):
        yield from _compared_in_plan(child)


def _operand(node: Any, definitions: Mapping[str, Any]) -> Operand:
    kind = class_name(node)
    if kind == "CommonExpressionRef":
        return _operand(definitions[str(node.id())], definitions)
    if kind == "OuterReference":
        return _operand(node.e(), definitions)
    if kind == "AttributeReference":
        metadata = node.metadata()
        declared = metadata.getString(DECLARED_TYPE) if metadata.contains(DECLARED_TYPE) else ""
        return Operand(int(node.exprId().id()), str(node.name()), char_length(declared))
    if kind == "Literal" and node.value() is not None and _is_text(node):
        return Operand(text=str(node.value()))
    return Operand()


def _is_text(node: Any) -> bool:
    return str(node.dataType().simpleString()) == "string"


def subquery_plans(plan: Any) -> Iterator[Any]:
    """The plans of the subqueries in the expressions of a plan's node."""
    return items(plan.subqueries())


def contains(spark: SparkSession, node: Any, pattern: str) -> bool:
    """Whether a node or one below it has ``pattern``, a member of ``TreePattern``."""
    return bool(node.containsPattern(tree_pattern(spark, pattern)))


def tree_pattern(spark: SparkSession, name: str) -> Any:
    """The member of ``TreePattern`` with this name."""
    return java_constant(spark, _PATTERNS, name)


def unresolved_names(leaves: Any) -> Iterator[Any]:
    """The names among the leaves of an expression without lambdas that was only parsed.

    One call tells which leaves look like names, so constants are not visited.
    """
    written = texts(leaves)
    if len(written) != leaves.size():
        found = items(leaves)  # a constant contains the separator
    else:
        found = (leaves.apply(i) for i, each in enumerate(written) if each.startswith(_UNRESOLVED))
    return (each for each in found if class_name(each) == "UnresolvedAttribute")


def and_connected(node: Any) -> Iterator[Any]:
    """The parts of a condition that AND connects, from the left."""
    if class_name(node) != "And":
        yield node
        return
    for child in items(node.children()):
        yield from and_connected(child)


def ids(attributes: Any) -> tuple[int, ...]:
    """The ids of a set of attributes."""
    return tuple(key for key, _ in ids_and_names(attributes))


def ids_and_names(attributes: Any) -> list[tuple[int, str]]:
    """The id and name of each of several attributes."""
    return [_id_and_name(text) for text in texts(attributes) if text]


def _id_and_name(text: str) -> tuple[int, str]:
    parts = _ATTRIBUTE.fullmatch(text)
    if parts is None:
        raise ValueError(f"not an attribute of Spark: {text}")
    return int(parts["id"]), parts["name"]


def texts(parts: Any) -> list[str]:
    """How Spark writes each of a Scala collection, in one call; an empty text if it is empty."""
    return str(parts.mkString(_BETWEEN)).split(_BETWEEN)


def items(sequence: Any) -> Iterator[Any]:
    """The items of a Scala sequence."""
    return (sequence.apply(index) for index in range(sequence.size()))


def class_name(node: Any) -> str:
    """The name of a node's class, without its package."""
    return str(node.productPrefix())
