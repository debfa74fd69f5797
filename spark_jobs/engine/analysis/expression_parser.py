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
    class_name,
    contains,
    items,
    unresolved_names,
)
from spark_jobs.engine.analysis.expressions import LONG_TERM

_AND = re.compile(r"\bAND\b", re.IGNORECASE)
_EQUALS = re.compile(r"==?")
_NAMED = ("Alias", "MultiAlias", "UnresolvedAlias")


@dataclass(frozen=True, slots=True)
class NameReference:
    """A name in an expression's text: its parts and the index of its first character."""

    parts: tuple[str, ...]
    start: int


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One conjunct of a condition; ``sides`` are the two sides if it is an ``=``."""

    text: str
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
        return tuple(map(_reference, unresolved_names(self.root)))

    @cached_property
    def has_subquery(self) -> bool:
        """Whether it contains a subquery."""
        return contains(self.spark, self.root, PLAN_EXPRESSION)

    @cached_property
    def has_many_parts(self) -> bool:
        """Whether it has more than ``LONG_TERM`` constants and columns."""
        return bool(self.root.collectLeaves().size() > LONG_TERM)

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
    parser = spark._jsparkSession.sessionState().sqlParser()
    return ParsedExpression(spark, text, parser.parseExpression(text))


def conjuncts(spark: SparkSession, text: str) -> list[Conjunct]:
    """The conjuncts of a condition: joined by AND, they mean the same as ``text``."""
    return list(_conjuncts(spark._jsparkSession.sessionState().sqlParser(), text))


def _conjuncts(parser: Any, text: str) -> Iterator[Conjunct]:
    """Split ``text`` at the ANDs where the parts parse to the conjuncts of the whole.

    The positions that the parser reports do not help: those of a predicate (``x IN (1)``) leave out
    its operand, and BETWEEN contains an AND too. So each AND is tried.
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
    parts = tuple(items(node.nameParts()))
    return NameReference(parts, int(node.origin().startIndex().get()))
