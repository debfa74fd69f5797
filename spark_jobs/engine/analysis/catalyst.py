"""What only Spark's own classes know: parsed expressions, analysed plans, observed metrics.

With ``catalyst_nodes``, ``statement_time`` and ``older_spark`` the module that reaches into
PySpark's JVM objects; its tests run on every PySpark version that is declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from spark_jobs.engine.analysis.catalyst_nodes import (
    PLAN_EXPRESSIONS,
    Operand,
    class_name,
    comparisons,
    ids,
    items,
    subquery_plans,
    walk,
)
from spark_jobs.engine.runtime.older_spark import column_of_expression

_AND = re.compile(r"\bAND\b", re.IGNORECASE)
_EQUALS = re.compile(r"==?")
_NAMED = ("Alias", "MultiAlias", "UnresolvedAlias")
_SUBQUERIES = (*PLAN_EXPRESSIONS, "InSubquery")
# What a subquery may read beside views: rows that it spells out itself.
_HARMLESS_LEAVES = ("LocalRelation", "OneRowRelation", "Range", "CTERelationRef")
# Nodes that hand on all columns of their inputs by position, without naming them.
_BY_POSITION = ("Union", "Except", "Intersect", "CTERelationDef")


@dataclass(frozen=True, slots=True)
class NameReference:
    """A name in an expression's text: its parts and the index of its first character."""

    parts: tuple[str, ...]
    start: int


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One of the parts that AND connects; ``sides`` are both sides of an ``=``."""

    text: str
    sides: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class ParsedExpression:
    """What the parser alone tells of an expression.

    ``is_named``: a name stands behind it (``a AS b``, ``a b``), which Spark takes for an alias.
    """

    names: tuple[NameReference, ...]
    has_subquery: bool
    is_named: bool


@dataclass(frozen=True, slots=True)
class SelectedExpression:
    """What the analyzer tells of the only expression that a frame selects.

    ``attributes`` are the ids of the input columns that it reads; ``operators`` the class names of
    the plan's nodes from the top to the first with several inputs or none.
    """

    attributes: tuple[int, ...]
    deterministic: bool
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadingExpression:
    """What the analyzer tells of an expression that may hold subqueries.

    ``attributes`` are the ids of the frame's columns that it reads, also from within subqueries.
    ``view_columns`` are the columns that subqueries read, by the name of the temporary view;
    ``other_relations`` the class names of what else they read.
    """

    attributes: tuple[int, ...]
    deterministic: bool
    view_columns: Mapping[str, frozenset[str]]
    other_relations: frozenset[str]


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """A node of an expression that was analysed on a frame.

    ``kind`` is the name of Spark's class; ``attributes`` the ids of the columns that it reads;
    ``attribute`` the one that it is; ``text`` the text that it is, as a literal; ``type_name`` its
    type as Spark writes it.
    ``is_safe_upcast``: a cast that keeps the order of values and can not fail.
    ``has_predicate_subquery``: it holds a subquery that is not just one constant.
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


def parse_expression(spark: SparkSession, text: str) -> ParsedExpression:
    """Parse ``text`` with the session's parser.

    Raises:
        ParseException: the text is no expression.
    """
    parser = spark._jsparkSession.sessionState().sqlParser()
    root = parser.parseExpression(text)
    return ParsedExpression(
        names=tuple(_free_names(root, frozenset())),
        has_subquery=any(class_name(node) in _SUBQUERIES for node in walk(root)),
        is_named=class_name(root) in _NAMED,
    )


def conjuncts(spark: SparkSession, text: str) -> list[Conjunct]:
    """The parts of a condition that AND connects: together they mean what ``text`` means."""
    return list(_conjuncts(spark._jsparkSession.sessionState().sqlParser(), text))


def selected_expression(frame: DataFrame) -> SelectedExpression:
    """The expression of a frame made by ``select`` of one expression."""
    plan = frame._jdf.queryExecution().analyzed()
    operators = tuple(_operators(plan))
    if operators[0] != "Project":
        return SelectedExpression((), True, operators)
    expression = plan.projectList().apply(0)
    attributes = ids(expression.references())
    return SelectedExpression(attributes, bool(expression.deterministic()), operators)


def filter_condition(frame: DataFrame) -> ReadingExpression:
    """The condition of a frame made by ``where``."""
    return _reading(frame._jdf.queryExecution().analyzed().condition())


def selected_value(frame: DataFrame) -> ReadingExpression:
    """The expression of a frame made by ``select`` of one expression."""
    return _reading(frame._jdf.queryExecution().analyzed().projectList().apply(0))


def _reading(expression: Any) -> ReadingExpression:
    used: set[int] = set()
    views: list[tuple[str, dict[int, str]]] = []
    others: set[str] = set()
    for plan in subquery_plans(expression):
        _collect_subquery(plan, used, views, others)
    columns: dict[str, frozenset[str]] = {}
    for name, output in views:
        read = {column for key, column in output.items() if key in used}
        columns[name] = columns.get(name, frozenset()) | read
    return ReadingExpression(
        attributes=ids(expression.references()),
        deterministic=bool(expression.deterministic()),
        view_columns=columns,
        other_relations=frozenset(others),
    )


def bound_value(frame: DataFrame) -> BoundExpression:
    """The expression of a frame made by ``select`` of one expression, as a tree."""
    expression = frame._jdf.queryExecution().analyzed().projectList().apply(0)
    return _bound(frame.sparkSession, expression, {})


def bound_condition(frame: DataFrame) -> BoundExpression:
    """The condition of a frame made by ``where``, as a tree."""
    condition = frame._jdf.queryExecution().analyzed().condition()
    return _bound(frame.sparkSession, condition, {})


def compared_in_value(frame: DataFrame) -> list[tuple[Operand, ...]]:
    """The comparisons in a frame made by ``select`` of one expression."""
    return list(comparisons(frame._jdf.queryExecution().analyzed().projectList().apply(0)))


def compared_in_condition(frame: DataFrame) -> list[tuple[Operand, ...]]:
    """The comparisons in the condition of a frame made by ``where``."""
    return list(comparisons(frame._jdf.queryExecution().analyzed().condition()))


def attribute_ids(frame: DataFrame) -> dict[int, str]:
    """The ids of a frame's columns and their names."""
    return _names_by_id(frame._jdf.queryExecution().analyzed())


def error_condition(error: PySparkException) -> str:
    """Spark's name of an error, such as ``UNRESOLVED_COLUMN.WITH_SUGGESTION``; may be empty."""
    get = getattr(error, "getCondition", None) or error.getErrorClass
    return get() or ""


def observed_metric(frame: DataFrame, observation: str) -> int:
    """The first metric of an observation of a frame that has been collected; 0 when it is absent.

    ``Observation.get`` would wait for ever where the optimizer dropped the node.
    """
    metrics = frame._jdf.queryExecution().observedMetrics()
    return int(metrics.apply(observation).getLong(0)) if metrics.contains(observation) else 0


def plan_bytes(frame: DataFrame) -> int:
    """About how many bytes the frame has, as Spark's optimizer estimates them."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def running_tasks(spark: SparkSession) -> int:
    """Tasks of this application that run at this moment, those of failed stages included."""
    tracker = spark._jsparkSession.sparkContext().statusTracker()
    return sum(int(each.numRunningTasks()) for each in tracker.getExecutorInfos())


def _conjuncts(parser: Any, text: str) -> Iterator[Conjunct]:
    """The parts of ``text`` between those ANDs at which it falls apart into the same expression.

    The positions that the parser reports are of no use: those of a predicate (``x IN (1)``) do not
    cover what it is about, and BETWEEN holds an AND too. So each AND is tried.
    """
    text = _without_parentheses(parser, text)
    wanted = list(_and_connected(parser.parseExpression(text)))
    if len(wanted) == 1:
        yield Conjunct(text, _sides(parser, text, wanted[0]))
        return
    start = 0
    for stop, after in [*_occurrences(_AND, text), (len(text), len(text))]:
        part = text[start:stop]
        node = _parsed(parser, part)
        found = [] if node is None else list(_and_connected(node))
        if found and _same(found, wanted[: len(found)]):
            whole = part == text
            yield from [Conjunct(text, None)] if whole else _conjuncts(parser, part)
            wanted, start = wanted[len(found) :], after


def _sides(parser: Any, text: str, node: Any) -> tuple[str, str] | None:
    if class_name(node) != "EqualTo":
        return None
    for stop, after in _occurrences(_EQUALS, text):
        sides = (text[:stop], text[after:])
        parsed = [_parsed(parser, side) for side in sides]
        if _same(parsed, list(items(node.children()))):
            left, right = (_without_parentheses(parser, side) for side in sides)
            return left, right
    return None


def _without_parentheses(parser: Any, text: str) -> str:
    text = text.strip()
    while text.startswith("(") and text.endswith(")"):
        inner = text[1:-1].strip()
        if not _same([_parsed(parser, inner)], [_parsed(parser, text)]):
            break
        text = inner
    return text


def _and_connected(node: Any) -> Iterator[Any]:
    if class_name(node) != "And":
        yield node
        return
    for child in items(node.children()):
        yield from _and_connected(child)


def _occurrences(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    return [match.span() for match in pattern.finditer(text)]


def _parsed(parser: Any, text: str) -> Any | None:
    try:
        return parser.parseExpression(text)
    except ParseException:
        return None


def _same(found: list[Any], wanted: list[Any]) -> bool:
    return len(found) == len(wanted) and all(
        one is not None and one.equals(other) for one, other in zip(found, wanted, strict=True)
    )


def _free_names(node: Any, bound: frozenset[str]) -> Iterator[NameReference]:
    """The names below ``node``, but for ``bound`` ones: those of an enclosing lambda's variables.

    Within a lambda the parser takes every name for a variable.
    """
    kind = class_name(node)
    children = list(items(node.children()))
    if kind == "LambdaFunction":
        body, *variables = children
        bound = bound.union(str(each.nameParts().apply(0)).lower() for each in variables)
        children = [body]
    elif kind in ("UnresolvedAttribute", "UnresolvedNamedLambdaVariable"):
        parts = tuple(items(node.nameParts()))
        if kind == "UnresolvedAttribute" or parts[0].lower() not in bound:
            yield NameReference(parts, int(node.origin().startIndex().get()))
    for child in children:
        yield from _free_names(child, bound)


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
    is_subquery = kind in _SUBQUERIES
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
    given, wanted = cast.child().dataType(), cast.dataType()
    to_text = wanted.simpleString() == "string"
    jvm: Any = spark._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    return not to_text and bool(catalyst.expressions.Cast.canUpCast(given, wanted))


def _collect_subquery(
    plan: Any, used: set[int], views: list[tuple[str, dict[int, str]]], others: set[str]
) -> None:
    """What a subquery reads; its result counts too, which ``TABLE v`` names in no expression."""
    used.update(ids(plan.outputSet()))
    _collect_reads(plan, used, views, others)


def _collect_reads(
    plan: Any, used: set[int], views: list[tuple[str, dict[int, str]]], others: set[str]
) -> None:
    kind = class_name(plan)
    if kind == "View":
        views.append((str(plan.desc().identifier().table()), _names_by_id(plan)))
        return
    for expression in items(plan.expressions()):
        used.update(ids(expression.references()))
        for subquery in subquery_plans(expression):
            _collect_subquery(subquery, used, views, others)
    children = list(items(plan.children()))
    if kind in _BY_POSITION:
        for child in children:
            used.update(ids(child.outputSet()))
    if not children and kind not in _HARMLESS_LEAVES:
        others.add(kind)
    for child in children:
        _collect_reads(child, used, views, others)


def _names_by_id(plan: Any) -> dict[int, str]:
    return {int(each.exprId().id()): str(each.name()) for each in items(plan.output())}


def _operators(plan: Any) -> Iterator[str]:
    yield class_name(plan)
    children = list(items(plan.children()))
    if len(children) == 1:
        yield from _operators(children[0])
