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
_SEVERAL: Final = "org.apache.spark.sql.catalyst.expressions.Coalesce"
# Expressions that are looked at together; commas of a text that is long.
_PART: Final = 200
_LONG: Final = 3_000
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
    return _Reading(spark, text).of(parser.parsePlan(text))


def parsed_expression(spark: SparkSession, text: str) -> ParsedText:
    """What is in an expression, its subqueries included.

    Raises:
        ParseException: the text is no expression.
    """
    root = spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    nothing = java_class(spark, f"{_LOGICAL}.OneRowRelation")()
    plan = java_class(spark, f"{_LOGICAL}.Filter")(root, nothing)
    reading = _Reading(spark, text)
    if contains(spark, root, PLAN_EXPRESSION):
        return reading.of(plan)
    reading.read_expressions(plan.expressions())
    return reading.found()


class _Reading:
    """What was found so far."""

    def __init__(self, spark: SparkSession, text: str) -> None:
        self._spark = spark
        # A call may stand where Catalyst's patterns do not tell of it.
        self._hides_calls = _COMPUTED in text.upper() or _PIPE in text
        # A list of values may be too long for Catalyst's JSON, whose time is quadratic in it.
        self._is_long = text.count(",") > _LONG and not self._hides_calls
        self._nodes: set[str] = set()
        self._expressions: set[str] = set()
        self._functions: set[str] = set()
        self._relations: list[Relation] = []

    def of(self, plan: Any) -> ParsedText:
        """What is in a plan."""
        self._read(plan)
        return self.found()

    def found(self) -> ParsedText:
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
        elif kind == "WithWindowDefinition":
            windows = plan.windowDefinitions().values().toSeq()
            self.read_expressions(windows)
            if any(contains(self._spark, each, PLAN_EXPRESSION) for each in items(windows)):
                self._nodes.add("a subquery in a WINDOW clause")
        if self._may_call(plan):
            self.read_expressions(plan.expressions())
        for inner in _inner_plans(kind, plan):
            self._read(inner)

    def read_expressions(self, expressions: Any) -> None:
        """Read a Scala sequence of expressions, a part of it at a time."""
        waiting = [expressions]
        while waiting:
            sequence = waiting.pop()
            for start in range(0, sequence.size(), _PART):
                part = self._joined(sequence.slice(start, start + _PART))
                if not self._may_call(part):
                    continue
                names = None if self._is_long else self._called(part)
                if names is None:
                    waiting += [self._passed(each) for each in self._calling(part)]
                else:
                    self._functions.update(names)

    def _called(self, expression: Any) -> list[str] | None:
        """The functions that it calls, in one call to the JVM; None: names are cut, look closer."""
        nodes = list(_nodes(json.loads(str(expression.toJSON()))))
        self._expressions.update(map(_kind, nodes))
        names = [_written(each["nameParts"]) for each in nodes if _kind(each) == _CALL]
        # With 0 in spark.sql.debug.maxToStringFields. What else hides is never allowed then.
        is_cut = any(_CUT in name for name in names)
        return None if is_cut and not self._hides_calls else names

    def _calling(self, expression: Any) -> Iterator[Any]:
        """The children that call something, themselves or below."""
        return filter(self._may_call, items(expression.children()))

    def _passed(self, expression: Any) -> Any:
        """Note a single expression; its children are still to be read."""
        kind = class_name(expression)
        self._expressions.add(kind)
        if kind == _CALL:
            self._functions.add(str(expression.nameParts().mkString(".")))
        return expression.children()

    def _may_call(self, node: Any) -> bool:
        return self._hides_calls or contains(self._spark, node, _FUNCTION)

    def _joined(self, expressions: Any) -> Any:
        """An expression that has these as its children."""
        return java_class(self._spark, _SEVERAL)(expressions)


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


def _written(parts: Any) -> str:
    """A name as JSON has it: a list of its parts, or a text that looks like one."""
    return ".".join(parts) if isinstance(parts, list) else str(parts).strip("[]").replace(", ", ".")
