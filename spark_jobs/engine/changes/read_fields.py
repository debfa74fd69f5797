"""Which fields of a view's structs an analysed query reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from spark_jobs.engine.analysis.catalyst_nodes import (
    class_name,
    ids,
    ids_and_names,
    items,
    subquery_plans,
)

# Nodes that pass on all columns of their inputs by position, without naming them.
_BY_POSITION: Final = ("Union", "Except", "Intersect", "CTERelationDef")


def read_fields(plan: Any, view: str, column: str) -> frozenset[str] | None:
    """The fields that a query reads of a view's ``column``, a struct; None: all of them."""
    outputs = (each for node in _views(plan, view) for each in ids_and_names(node.output()))
    reads = _Reads(frozenset(key for key, name in outputs if name == column))
    reads.read_query(plan)
    return None if reads.reads_all else frozenset(reads.fields)


@dataclass(slots=True)
class _Reads:
    """What was found so far of the attributes with these ``ids``."""

    ids: frozenset[int]
    fields: set[str] = field(default_factory=set)
    reads_all: bool = False

    def read_query(self, plan: Any) -> None:
        """Read a query or a subquery."""
        self._pass_on(plan)
        self._read(plan)

    def _pass_on(self, plan: Any) -> None:
        """All columns of a plan are read."""
        self.reads_all |= not self.ids.isdisjoint(ids(plan.outputSet()))

    def _read(self, plan: Any) -> None:
        kind = class_name(plan)
        if kind == "View":
            return
        for expression in items(plan.expressions()):
            self._read_expression(expression)
        for subquery in subquery_plans(plan):
            self.read_query(subquery)
        for child in items(plan.children()):
            if kind in _BY_POSITION:
                self._pass_on(child)
            self._read(child)

    def _read_expression(self, expression: Any) -> None:
        if class_name(expression) == "GetStructField" and self._is_column(expression.child()):
            field_of = expression.childSchema().apply(expression.ordinal())
            self.fields.add(str(field_of.name()))
            return
        self.reads_all |= self._is_column(expression)
        for child in items(expression.children()):
            self._read_expression(child)

    def _is_column(self, expression: Any) -> bool:
        kind = class_name(expression)
        if kind == "OuterReference":
            return self._is_column(expression.e())
        return kind == "AttributeReference" and int(expression.exprId().id()) in self.ids


def _views(plan: Any, name: str) -> Iterator[Any]:
    if class_name(plan) == "View":
        if str(plan.desc().identifier().table()).lower() == name:
            yield plan
        return
    for inner in (*items(plan.children()), *subquery_plans(plan)):
        yield from _views(inner, name)
