"""What Spark's parser finds in a query: its nodes, the functions that it calls, the names it reads.

Nothing has been looked up, and so nothing loaded or run. The functions that very many expressions
call are collected in the JVM, since Py4J would make several calls for each expression. Scala's
collections take functions, which Java makes of its own methods (``java.lang.invoke``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from spark_jobs.engine.analysis.catalyst_nodes import (
    PLAN_EXPRESSION,
    UNRESOLVED_FUNCTION,
    class_name,
    contains,
    items,
    sql_parser,
    texts,
    tree_pattern,
)
from spark_jobs.engine.runtime.java_names import java_class

_CALL: Final = "UnresolvedFunction"
_STAR: Final = "UnresolvedStarExceptOrReplace"
_SEVERAL: Final = "org.apache.spark.sql.catalyst.expressions.Coalesce"
# More expressions than these are looked at together.
_MANY: Final = 100
_LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical"
# The keyword in front of names that are computed; the parser reads letters in upper case.
_COMPUTED: Final = "IDENTIFIER"
# Columns that it sets are in a field of a star.
_PIPE: Final = "|>"
_COMPUTED_NODE: Final = "ExpressionWithUnresolvedIdentifier"
_COMPUTED_PLAN: Final = "PlanWithUnresolvedIdentifier"
_UNRESOLVED_FUNCTION: Final = "org.apache.spark.sql.catalyst.analysis.UnresolvedFunction"
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
        return _COMPUTED_PLAN in self.nodes or _COMPUTED_NODE in self.expressions


def parsed_query(spark: SparkSession, text: str) -> ParsedText:
    """What is in a statement.

    Raises:
        ParseException: the text is no statement.
    """
    return _Reading(spark, text).of(sql_parser(spark).parsePlan(text))


def parsed_expression(spark: SparkSession, text: str) -> ParsedText:
    """What is in an expression, its subqueries included.

    Raises:
        ParseException: the text is no expression.
    """
    root = sql_parser(spark).parseExpression(text)
    reading = _Reading(spark, text)
    if contains(spark, root, PLAN_EXPRESSION):
        nothing = java_class(spark, f"{_LOGICAL}.OneRowRelation")()
        return reading.of(java_class(spark, f"{_LOGICAL}.Filter")(root, nothing))
    reading.read_expression(root)
    return reading.found()


class _Reading:
    """What was found so far."""

    def __init__(self, spark: SparkSession, text: str) -> None:
        self._spark = spark
        # A call may stand where Catalyst's patterns do not tell of it.
        self._hides_calls = _COMPUTED in text.upper() or _PIPE in text
        self._is_long = text.count("(") > _MANY
        self._pattern = tree_pattern(spark, UNRESOLVED_FUNCTION)
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
            parts = texts(plan.multipartIdentifier())
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

    def read_expression(self, root: Any) -> None:
        """Read an expression and all that is below it, if it calls something."""
        if self._may_call(root):
            for expressions in self._passed(root):
                self.read_expressions(expressions)

    def read_expressions(self, expressions: Any) -> None:
        """Read a Scala sequence of expressions: of those that call something, all that is below."""
        waiting = [expressions]
        while waiting:
            sequence = waiting.pop()
            is_large = self._is_long or sequence.size() > _MANY
            if is_large and self._reads_at_once(sequence):
                continue
            for expression in items(sequence):
                if self._may_call(expression):
                    waiting += self._passed(expression)

    def _passed(self, expression: Any) -> list[Any]:
        """Note a single expression; what is still to be read."""
        kind = class_name(expression)
        self._expressions.add(kind)
        if kind == _CALL:
            self._functions.add(str(expression.nameParts().mkString(".")))
        elif kind == _STAR and not expression.replacements().isEmpty():
            return [expression.replacements().get()]
        return [expression.children()]

    def _reads_at_once(self, expressions: Any) -> bool:
        """Read many expressions in a few calls to the JVM; False: they have to be read singly."""
        if self._hides_calls:
            return False
        joined = java_class(self._spark, _SEVERAL)(expressions)
        if self._may_call(joined):
            self._functions.update(_called_functions(self._spark, joined))
        return True

    def _may_call(self, node: Any) -> bool:
        return self._hides_calls or bool(node.containsPattern(self._pattern))


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


def _called_functions(spark: SparkSession, expression: Any) -> set[str]:
    """The names of all functions below ``expression``, which was only parsed; parts are joined."""
    java = _Java(spark)
    nodes, names = java.new("java.util.ArrayList"), java.new("java.util.HashSet")
    expression.foreach(java.function(java.bound(nodes, "add", "java.lang.Object")))
    call = java.named(_UNRESOLVED_FUNCTION)
    calls = java.sequence(nodes).filter(
        java.function(java.bound(call, "isInstance", "java.lang.Object"))
    )
    add = java.bound(names, "add", "java.lang.Object")
    calls.foreach(java.function(java.composed(java.method(call, "nameParts"), add)))
    found = java.sequence(java.new("java.util.ArrayList", names)).mkString(_BETWEEN)
    return {".".join(_parts(each)) for each in str(found).split(_BETWEEN)}


def _parts(written: str) -> list[str]:
    """The parts of a name as Scala writes a sequence: ``List(a, b)``."""
    return written.partition("(")[2].removesuffix(")").split(", ")


class _Java:
    """Functions of Scala that are methods of Java, called with one argument."""

    def __init__(self, spark: SparkSession) -> None:
        invoke = "java.lang.invoke"
        self._spark = spark
        self._handles = java_class(spark, f"{invoke}.MethodHandles")
        self._lookup = self._handles.publicLookup()
        self._any = java_class(spark, f"{invoke}.MethodType").genericMethodType(1)
        self._proxies = java_class(spark, f"{invoke}.MethodHandleProxies")

    def named(self, name: str) -> Any:
        """The class of this name."""
        return java_class(self._spark, "java.lang.Class").forName(name)

    def new(self, name: str, *arguments: Any) -> Any:
        """A new object of the class of this name."""
        return java_class(self._spark, name)(*arguments)

    def sequence(self, java_list: Any) -> Any:
        """A list of Java as a sequence of Scala."""
        return java_class(self._spark, "org.apache.spark.api.python.PythonUtils").toSeq(java_list)

    def method(self, of_class: Any, name: str, *types: str) -> Any:
        """The handle of a method; its first argument is the receiver."""
        gateway: Any = self._spark.sparkContext._gateway  # noqa: SLF001
        named = gateway.new_array(java_class(self._spark, "java.lang.Class"), len(types))
        for position, each in enumerate(types):
            named[position] = self.named(each)
        return self._lookup.unreflect(of_class.getMethod(name, named))

    def bound(self, receiver: Any, name: str, *types: str) -> Any:
        """The handle of a method of ``receiver``."""
        return self.method(receiver.getClass(), name, *types).bindTo(receiver)

    def composed(self, first: Any, second: Any) -> Any:
        """The handle of ``second(first(x))``."""
        return self._handles.filterReturnValue(first.asType(self._any), second.asType(self._any))

    def function(self, handle: Any) -> Any:
        """A handle as a function of Scala."""
        function = self.named("scala.Function1")
        return self._proxies.asInterfaceInstance(function, handle.asType(self._any))
