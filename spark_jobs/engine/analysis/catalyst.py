"""What Spark's analyzer knows about expressions and subqueries, read from its analysed plans.

Like its neighbours ``catalyst_nodes``, ``expression_parser``, ``bound_expressions`` and
``statement_time``, it reaches into PySpark's JVM objects, so its tests run on every declared
PySpark version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from spark_jobs.engine.analysis.catalyst_nodes import (
    Operand,
    and_connected,
    class_name,
    comparisons,
    ids,
    ids_and_names,
    items,
    subquery_plans,
)

# Leaves other than views that a subquery may have: none of them reads stored data.
_HARMLESS_LEAVES = ("LocalRelation", "OneRowRelation", "Range", "CTERelationRef")
# Nodes that pass on all columns of their inputs by position, without naming them.
_BY_POSITION = ("Union", "Except", "Intersect", "CTERelationDef")


@dataclass(frozen=True, slots=True)
class SelectedExpression:
    """What the analyzer knows about an expression that a frame selects.

    ``attributes`` are the ids of the input columns that it reads. ``operators`` are the class names
    of the plan's nodes, from the top to the first that has several inputs or none.
    """

    attributes: tuple[int, ...]
    deterministic: bool
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadingExpression:
    """What the analyzer knows about an expression that may contain subqueries.

    ``attributes`` are the ids of the frame's columns that it reads, including from subqueries.
    ``view_columns`` are the columns that subqueries read, by the name of the temporary view;
    ``other_relations`` are the class names of whatever else they read.
    """

    attributes: tuple[int, ...]
    deterministic: bool
    view_columns: Mapping[str, frozenset[str]]
    other_relations: frozenset[str]


def selected_expressions(frame: DataFrame) -> list[SelectedExpression]:
    """The expressions in the ``select`` that made ``frame``; one, of no use, if it has no rows of
    its input, as with an aggregate.
    """
    plan = frame._jdf.queryExecution().analyzed()
    operators = tuple(_operators(plan))
    if operators[0] != "Project":
        return [SelectedExpression((), True, operators)]
    return [
        SelectedExpression(ids(each.references()), bool(each.deterministic()), operators)
        for each in items(plan.projectList())
    ]


def selected_conjuncts(frame: DataFrame, place: int = 0) -> list[SelectedExpression]:
    """The parts, connected by AND, of an expression in the ``select`` that made ``frame``."""
    condition = frame._jdf.queryExecution().analyzed().projectList().apply(place).child()
    return [
        SelectedExpression(ids(part.references()), bool(part.deterministic()), ())
        for part in and_connected(condition)
    ]


def filter_condition(frame: DataFrame) -> ReadingExpression:
    """The condition of the ``where`` that made ``frame``."""
    plan = frame._jdf.queryExecution().analyzed()
    return _reading(plan, plan.condition())


def selected_value(frame: DataFrame) -> ReadingExpression:
    """The only expression in the ``select`` that made ``frame``."""
    plan = frame._jdf.queryExecution().analyzed()
    return _reading(plan, plan.projectList().apply(0))


def _reading(node: Any, expression: Any) -> ReadingExpression:
    """``expression``, the only one of a plan's node."""
    used: set[int] = set()
    views: list[tuple[str, dict[int, str]]] = []
    others: set[str] = set()
    for plan in subquery_plans(node):
        _collect_subquery(plan, used, views, others)
    return ReadingExpression(
        attributes=ids(expression.references()),
        deterministic=bool(expression.deterministic()),
        view_columns=_columns_by_view(views, used),
        other_relations=frozenset(others),
    )


def _columns_by_view(
    views: Iterable[tuple[str, dict[int, str]]], used: set[int]
) -> dict[str, frozenset[str]]:
    columns: dict[str, frozenset[str]] = {}
    for name, output in views:
        read = {column for key, column in output.items() if key in used}
        columns[name] = columns.get(name, frozenset()) | read
    return columns


def view_columns(frame: DataFrame) -> dict[str, frozenset[str]]:
    """The columns that the query of ``frame`` reads, also by ``*``, by the name of the view."""
    used: set[int] = set()
    views: list[tuple[str, dict[int, str]]] = []
    _collect_subquery(frame._jdf.queryExecution().analyzed(), used, views, set())
    return _columns_by_view(views, used)


def reads_beside_views(frame: DataFrame) -> bool:
    """Whether the query of ``frame`` reads stored data that is no view's."""
    return _reads_beside_views(frame._jdf.queryExecution().analyzed())


def _reads_beside_views(plan: Any) -> bool:
    kind = class_name(plan)
    if kind == "View":
        return False
    children = list(items(plan.children()))
    if not children and kind not in _HARMLESS_LEAVES:
        return True
    return any(map(_reads_beside_views, [*children, *items(plan.subqueries())]))


def compared_in_value(frame: DataFrame) -> list[tuple[Operand, ...]]:
    """The comparisons in the only expression of the ``select`` that made ``frame``."""
    return list(comparisons(frame._jdf.queryExecution().analyzed().projectList().apply(0)))


def compared_in_condition(frame: DataFrame) -> list[tuple[Operand, ...]]:
    """The comparisons in the condition of the ``where`` that made ``frame``."""
    return list(comparisons(frame._jdf.queryExecution().analyzed().condition()))


def attribute_ids(frame: DataFrame) -> dict[int, str]:
    """The names of a frame's columns, by id."""
    return _names_by_id(frame._jdf.queryExecution().analyzed())


def _collect_subquery(
    plan: Any, used: set[int], views: list[tuple[str, dict[int, str]]], others: set[str]
) -> None:
    """Collect what a subquery reads, its output included: ``TABLE v`` has no expressions."""
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
    for subquery in subquery_plans(plan):
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
    return dict(ids_and_names(plan.output()))


def _operators(plan: Any) -> Iterator[str]:
    yield class_name(plan)
    children = list(items(plan.children()))
    if len(children) == 1:
        yield from _operators(children[0])
