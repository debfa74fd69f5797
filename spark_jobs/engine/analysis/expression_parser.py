"""What Spark's parser alone finds in an expression: its names, subqueries, AND and ``=``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from spark_jobs.engine.analysis.catalyst_nodes import (
    LAMBDA_FUNCTION,
    PLAN_EXPRESSION,
    and_connected,
    class_name,
    contains,
    items,
    sql_parser,
    texts,
    unresolved_names,
)
from spark_jobs.engine.analysis.expressions import LONG_TERM

_AND = re.compile(r"\bAND\b", re.IGNORECASE)
_EQUALS = re.compile(r"==?")
_NAMED = ("Alias", "MultiAlias", "UnresolvedAlias")


@dataclass(frozen=True)
class NameReference:
    """A name in an expression's text: its parts, and its ``node`` in Catalyst's tree."""

    parts: tuple[str, ...]
    node: Any

    @cached_property
    def start(self) -> int:
        """The index of its first character."""
        return int(self.node.origin().startIndex().get())


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One conjunct of a condition; ``sides`` are the two sides if it is an ``=``."""

    parsed: ParsedExpression
    sides: tuple[str, str] | None


@dataclass(frozen=True)
class ParsedExpression:
    """What the parser alone finds in an expression; ``root`` is its Catalyst tree."""

    spark: SparkSession
    text: str
    root: Any

    @cached_property
    def names(self) -> tuple[NameReference, ...]:
        """The names in it, except variables of lambdas."""
        if contains(self.spark, self.root, LAMBDA_FUNCTION):
            return tuple(_free_names(self.root, frozenset()))
        return tuple(map(_reference, unresolved_names(self._leaves)))

    @cached_property
    def has_subquery(self) -> bool:
        """Whether it contains a subquery."""
        return contains(self.spark, self.root, PLAN_EXPRESSION)

    @cached_property
    def has_many_parts(self) -> bool:
        """Whether it has more than ``LONG_TERM`` constants and columns."""
        return bool(self._leaves.size() > LONG_TERM)

    @cached_property
    def _leaves(self) -> Any:
        return self.root.collectLeaves()

    @cached_property
    def is_long(self) -> bool:
        """Whether it has many parts and is one term, not several joined by AND."""
        return self.has_many_parts and class_name(self.root) != "And"

    @cached_property
    def is_named(self) -> bool:
        """Whether it ends in a name (``a AS b``, ``a b``) that Spark takes for an alias."""
        return class_name(self.root) in _NAMED


def parse_expression(spark: SparkSession, text: str) -> ParsedExpression:
    """Parse ``text`` with the session's parser.

    Raises:
        ParseException: the text is not an expression.
    """
    return ParsedExpression(spark, text, sql_parser(spark).parseExpression(text))


def conjuncts(condition: ParsedExpression) -> Iterator[Conjunct]:
    """The conjuncts of a condition: joined by AND, they mean the same.

    Its text is split at the ANDs where the parts parse to the conjuncts of the whole.

    The positions that the parser reports do not help: those of a predicate (``x IN (1)``) leave out
    its operand, and BETWEEN contains an AND too. So each AND is tried.
    """
    whole = _without_parentheses(condition)
    text, wanted = whole.text, list(and_connected(whole.root))
    if len(wanted) == 1:
        yield Conjunct(whole, _sides(whole))
        return
    start = 0
    for stop, after in [*_occurrences(_AND, text), (len(text), len(text))]:
        part = _parsed(whole.spark, text[start:stop])
        terms = [] if part is None else list(and_connected(part.root))
        if part and terms and _same(terms, wanted[: len(terms)]):
            yield from [Conjunct(whole, None)] if part.text == text else conjuncts(part)
            wanted, start = wanted[len(terms) :], after


def _sides(equality: ParsedExpression) -> tuple[str, str] | None:
    text, node = equality.text, equality.root
    if class_name(node) != "EqualTo":
        return None
    wanted = list(items(node.children()))
    for stop, after in _occurrences(_EQUALS, text):
        sides = [_parsed(equality.spark, side) for side in (text[:stop], text[after:])]
        parsed = [side for side in sides if side is not None]
        if _same([side.root for side in parsed], wanted):
            left, right = (_without_parentheses(side).text for side in parsed)
            return left, right
    return None


def _without_parentheses(expression: ParsedExpression) -> ParsedExpression:
    """The same expression without blanks and parentheses around it."""
    spark, text = expression.spark, expression.text.strip()
    if text != expression.text:
        expression = parse_expression(spark, text)
    while text.startswith("(") and text.endswith(")"):
        inner = _parsed(spark, text[1:-1])
        if inner is None or not _same([inner.root], [expression.root]):
            break
        expression, text = inner, inner.text
    return expression


def _occurrences(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    return [match.span() for match in pattern.finditer(text)]


def _parsed(spark: SparkSession, text: str) -> ParsedExpression | None:
    try:
        return parse_expression(spark, text.strip())
    except ParseException:
        return None


def _same(found: list[Any], wanted: list[Any]) -> bool:
    return len(found) == len(wanted) and all(
        one.equals(other) for one, other in zip(found, wanted, strict=True)
    )


def _free_names(node: Any, bound: frozenset[str]) -> Iterator[NameReference]:
    """The names below ``node``, except ``bound`` ones: the variables of enclosing lambdas.

    Within a lambda the parser takes every name for a variable.
    """
    kind = class_name(node)
    children = list(items(node.children()))
    if kind == "LambdaFunction":
        body, *variables = children
        bound = bound.union(str(each.nameParts().apply(0)).lower() for each in variables)
        children = [body]
    elif kind in ("UnresolvedAttribute", "UnresolvedNamedLambdaVariable"):
        name = _reference(node)
        if kind == "UnresolvedAttribute" or name.parts[0].lower() not in bound:
            yield name
    for child in children:
        yield from _free_names(child, bound)


def _reference(node: Any) -> NameReference:
    return NameReference(tuple(texts(node.nameParts())), node)
