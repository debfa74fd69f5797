"""What Spark's parser finds in a query: its nodes, the functions that it calls, the names it reads.

Nothing has been looked up, and so nothing loaded or run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from spark_jobs.engine.analysis.catalyst_nodes import (
    PLAN_EXPRESSION,
    class_name,
    contains,
    items,
)
from spark_jobs.engine.runtime.java_names import java_class

_FUNCTION: Final = "UNRESOLVED_FUNCTION"
_CALL: Final = "UnresolvedFunction"
_CUT: Final = "..."
_LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical"
# The keyword in front of names that are computed; the parser reads letters in upper case.
_COMPUTED: Final = "IDENTIFIER"
# Columns that it sets are in a field of a star.
_PIPE: Final = "|>"
_COMPUTED_NODE: Final = "ExpressionWithUnresolvedIdentifier"
# A part of a name has it only in backticks, and no function of Spark's own has it.
_BETWEEN: Final = "\0"


@dataclass(frozen=True, slots=True)
class Relation:
    """Something that a query reads by its name, with the names of the options that it gives it."""

    parts: tuple[str, ...]
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParsedText:
    """What is in a text: ``nodes`` and ``expressions`` are the class names of Catalyst's nodes.

    ``expressions`` has only those that may matter: those beside functions and computed names.
    ``functions`` are names as they are written, parts joined by dots.
    """

    nodes: frozenset[str]
    expressions: frozenset[str]
    functions: frozenset[str]
    relations: tuple[Relation, ...]

    @property
    def computes_names(self) -> bool:
        """Whether what it calls or reads is known only when it runs."""
        return _COMPUTED_NODE in self.expressions


def parsed_query(spark: SparkSession, text: str) -> ParsedText:
    """What is in a statement.

    Raises:
        ParseException: the text is no statement.
    """
    parser = spark._jsparkSession.sessionState().sqlParser()
    return _Reading(spark, _hides_calls(text)).of(parser.parsePlan(text))


def parsed_expression(spark: SparkSession, text: str) -> ParsedText:
    """What is in an expression, its subqueries included.

    Raises:
        ParseException: the text is no expression.
    """
    root = spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    reading = _Reading(spark, _hides_calls(text))
    if not contains(spark, root, PLAN_EXPRESSION):
        return reading.of_expression(root)
    nothing = java_class(spark, f"{_LOGICAL}.OneRowRelation")()
    return reading.of(java_class(spark, f"{_LOGICAL}.Filter")(root, nothing))


class _Reading:
    """``whole``: whether to look at expressions that call no function, too."""

    def __init__(self, spark: SparkSession, whole: bool) -> None:
        self._spark = spark
        self._whole = whole
        self._nodes: set[str] = set()
        self._expressions: set[str] = set()
        self._functions: set[str] = set()
        self._relations: list[Relation] = []

    def of(self, plan: Any) -> ParsedText:
        """What is in a plan."""
        self._read(plan)
        return self._found()

    def of_expression(self, expression: Any) -> ParsedText:
        """What is in an expression without subqueries."""
        if self._whole or contains(self._spark, expression, _FUNCTION):
            self._read_expression(expression)
        return self._found()

    def _found(self) -> ParsedText:
        return ParsedText(
            frozenset(self._nodes),
            frozenset(self._expressions),
            frozenset(self._functions),
            tuple(self._relations),
        )

    def _read(self, plan: Any) -> None:
        kind = class_name(plan)
        self._nodes.add(kind)
        if kind == "UnresolvedRelation":
            parts = str(plan.multipartIdentifier().mkString(_BETWEEN)).split(_BETWEEN)
            names = str(plan.options().keySet().toString()).strip("[]").split(", ")
            self._relations.append(Relation(tuple(parts), tuple(filter(None, names))))
        elif kind == "UnresolvedTableValuedFunction":
            self._functions.add(str(plan.name().mkString(".")))
        elif kind == "Generate":
            self._functions.update(_generator_names(plan.generator()))
        self._read_expressions(kind, plan)
        for inner in _inner_plans(kind, plan):
            self._read(inner)

    def _read_expressions(self, kind: str, plan: Any) -> None:
        if self._whole or contains(self._spark, plan, _FUNCTION):
            for expression in items(plan.expressions()):
                self._read_expression(expression)
        if kind == "WithWindowDefinition":
            for window in items(plan.windowDefinitions().values().toSeq()):
                self._read_expression(window)
                if contains(self._spark, window, PLAN_EXPRESSION):
                    self._nodes.add("a subquery in a WINDOW clause")

    def _read_expression(self, expression: Any) -> None:
        # In one call, however many values a list has.
        nodes = list(_nodes(json.loads(str(expression.toJSON()))))
        self._expressions.update(map(_kind, nodes))
        called = [_written(each["nameParts"]) for each in nodes if _kind(each) == _CALL]
        if any(_CUT in name for name in called):
            # spark.sql.debug.maxToStringFields is 0. What cannot be reached keeps its cut name.
            reached = list(_called(expression))
            called = reached + called[len(reached) :]
        self._functions.update(called)


def _inner_plans(kind: str, plan: Any) -> Iterator[Any]:
    yield from items(plan.children())
    yield from items(plan.subqueries())
    if kind == "UnresolvedWith":
        yield from items(plan.innerChildren())
    elif kind == "RelationTimeTravel":
        yield plan.relation()


def _generator_names(generator: Any) -> Iterator[str]:
    if class_name(generator) == "UnresolvedGenerator":
        yield str(generator.name().unquotedString())


def _hides_calls(text: str) -> bool:
    """Whether a call may stand where Catalyst's patterns do not tell of it."""
    return _COMPUTED in text.upper() or _PIPE in text


def _nodes(document: Any) -> Iterator[dict[str, Any]]:
    """The nodes in the JSON of a tree, with those in fields that are no children."""
    if isinstance(document, dict):
        if "class" in document:
            yield document
        document = list(document.values())
    if isinstance(document, list):
        for each in document:
            yield from _nodes(each)


def _kind(node: dict[str, Any]) -> str:
    return str(node["class"]).rpartition(".")[2]


def _called(expression: Any) -> Iterator[str]:
    """The names of the functions that an expression and its children call, one by one."""
    if class_name(expression) == _CALL:
        yield str(expression.nameParts().mkString("."))
    for child in items(expression.children()):
        yield from _called(child)


def _written(parts: Any) -> str:
    """A name as JSON has it: a list of its parts, or a text that looks like one."""
    return ".".join(parts) if isinstance(parts, list) else str(parts).strip("[]").replace(", ", ".")
