"""Long expressions, such as IN with thousands of constants, are parsed once.

Spark parses and analyses a text wherever it is part of a frame, and each step that follows walks
over everything below it again. So a long expression is handed on as the tree that Spark's parser
made. Long lists of constants in it are sets, as Spark's optimizer makes them (``InSet``): these
have no parts to analyse or to walk over. The analyzer itself sees one constant of a list whose
constants have one type, for it asks for nothing but types.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.analysis.catalyst_nodes import class_name, contains, items
from spark_jobs.engine.analysis.expression_parser import ParsedExpression, parse_expression
from spark_jobs.engine.analysis.expressions import LONG_TERM, LongExpression
from spark_jobs.engine.runtime.java_names import java_class, scala_object
from spark_jobs.engine.runtime.older_spark import column_of_expression

_OPTIMIZER: Final = "org.apache.spark.sql.catalyst.optimizer"
_EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions"
# A member of Spark's TreePattern.
_IN: Final = "IN"
# Long lists are looked for in so many nodes from the root.
_MOST_NODES: Final = 64
# A cast to one of these depends on nothing but the constant.
_FIXED: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date")


def value_alone(
    frame: DataFrame, parsed: ParsedExpression, *, with_all_constants: bool
) -> DataFrame:
    """The value of an expression over ``frame``, as ``value``; it is not parsed again.

    A long list of constants of one type has only its first, unless ``with_all_constants``: the
    lengths of texts matter where they are compared with a CHAR column.
    """
    root = parsed.root
    if not with_all_constants:
        root = root.transform(_mapping(parsed.spark, _first_constants(parsed)))
    return frame.select(column_of_expression(parsed.spark, root).alias("value"))


def _first_constants(parsed: ParsedExpression) -> list[tuple[Any, Any]]:
    """The long lists of constants of one type, and what has only the first constant of each."""
    found = [node for node, _ in _lists(parsed.spark, parsed.root, parsed.root)]
    return [
        (node, _with_items(parsed.spark, node, node.value(), node.list().take(1)))
        for node in found
        if _has_many_constants(node) and _have_one_type(parsed.spark, node)
    ]


def _have_one_type(spark: SparkSession, node: Any) -> bool:
    """Whether all items of a list have the type of the first."""
    constants = node.list()
    alone = _with_items(spark, node, constants.apply(0), constants)
    return bool(alone.checkInputDataTypes().isSuccess())


def _with_items(spark: SparkSession, node: Any, value: Any, constants: Any) -> Any:
    """The list ``node``, at its place in the text, of another value and other items."""
    arguments = java_class(spark, "org.apache.spark.api.python.PythonUtils").toArray
    return node.makeCopy(arguments([value, constants]))


def long_expression(
    text: str, parsed: ParsedExpression, name: str, value: DataFrame
) -> LongExpression:
    """The expression ``text``, for which ``name`` stands.

    ``parsed`` is the same text, perhaps without some of its qualifiers; ``value`` is the frame of
    its value alone.
    """
    spark, plan = parsed.spark, value._jdf.queryExecution().analyzed()
    written = parsed.root if text == parsed.text else parse_expression(spark, text).root
    analyzed = plan.projectList().apply(0).child()
    sets = []
    for before, after in _lists(spark, written, analyzed):
        if not _has_many_constants(before) or not _is_of_column(after):
            continue
        try:
            found = _set_of_all(spark, plan, before, after)
        except (PySparkException, Py4JJavaError):
            continue  # A constant does not fit: it is for Spark to decide whether that matters.
        name_of_column = _mapping(spark, [(_column_in(after), before.value())])
        sets.append((before, found.transform(name_of_column)))
    tree = written.transform(_mapping(spark, sets))
    has_many_terms = class_name(tree) == "And" and tree.collectLeaves().size() > LONG_TERM
    return LongExpression(spark, text, name, tree, has_many_terms)


def selected(frame: DataFrame, texts: Iterable[str], long: Iterable[LongExpression]) -> DataFrame:
    """``selectExpr`` of texts in which the names of ``long`` expressions stand for these."""
    by_name = {quote(each.name): each for each in long}
    if not by_name:
        return frame.selectExpr(*texts)
    return frame.select(*(_column(frame.sparkSession, text, by_name) for text in texts))


def _column(spark: SparkSession, text: str, long: Mapping[str, LongExpression]) -> Column:
    trees = [
        (parse_expression(spark, name).root, each.tree)
        for name, each in long.items()
        if name in text
    ]
    if not trees:
        return F.expr(text)
    whole = parse_expression(spark, text).root
    return column_of_expression(spark, whole.transform(_mapping(spark, trees)))


def _set_of_all(spark: SparkSession, plan: Any, written: Any, analyzed: Any) -> Any:
    """The list ``written`` as a set; ``analyzed`` has all of its constants or the first.

    It stays a list where a constant does not fit, or means another value at another time.
    """
    constants, known = written.list(), analyzed.list()
    if known.size() == constants.size():
        rules = ["ConstantFolding"] if _is_fixed(analyzed.value()) else []
        # Its items are literals, perhaps cast to the type of the column.
        return _optimized(spark, plan, analyzed, *rules, "OptimizeIn")
    first = known.apply(0)
    if class_name(first) == "Cast" and not _is_fixed(first):
        return written
    values = _optimized(spark, plan, _array(spark, constants, first), "ConstantFolding")
    if class_name(values) != "Literal":
        return written
    items_of_set = values.value().toSeq(first.dataType()).toSet()
    return java_class(spark, f"{_EXPRESSIONS}.InSet")(analyzed.value(), items_of_set)


def _array(spark: SparkSession, constants: Any, first: Any) -> Any:
    """An array of ``constants``, cast as ``first`` is: all in one cast."""
    array = java_class(spark, f"{_EXPRESSIONS}.CreateArray")(constants, False)
    if class_name(first) != "Cast":
        return array
    wanted = java_class(spark, "org.apache.spark.sql.types.ArrayType")(first.dataType(), True)
    cast = java_class(spark, f"{_EXPRESSIONS}.Cast")
    return cast(array, wanted, first.timeZoneId(), first.evalMode())


def _optimized(spark: SparkSession, plan: Any, node: Any, *rules: str) -> Any:
    """What these rules of Spark's optimizer make of ``node``, in place of all that ``plan`` has."""
    value = plan.projectList().apply(0).child()
    plan = plan.transformExpressions(_mapping(spark, [(value, node)]))
    for rule in rules:
        plan = scala_object(spark, f"{_OPTIMIZER}.{rule}").apply(plan)
    return plan.projectList().apply(0).child()


def _is_fixed(value: Any) -> bool:
    """Whether a cast to the type of ``value`` depends on nothing but the constant.

    Others may depend on the time, as that of ``'12:00'`` to TIMESTAMP.
    """
    return str(value.dataType().simpleString()).partition("(")[0] in _FIXED


def _lists(spark: SparkSession, written: Any, analyzed: Any) -> Iterator[tuple[Any, Any]]:
    """The nodes ``value IN (…)`` near the root.

    ``written`` is the tree of the text, ``analyzed`` what Spark's analyzer made of it. Yields each
    node as it is in either.
    """
    waiting = deque([(written, analyzed)])
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        before, after = waiting.popleft()
        if class_name(before) == class_name(after) == "In":
            yield before, after
        elif contains(spark, after, _IN) and after.children().size() <= _MOST_NODES:
            pairs = zip(items(before.children()), items(after.children()), strict=False)
            waiting.extend(pairs)


def _has_many_constants(written: Any) -> bool:
    return bool(written.list().size() > LONG_TERM and written.inSetConvertible())


def _is_of_column(analyzed: Any) -> bool:
    return class_name(_column_in(analyzed)) == "AttributeReference"


def _column_in(node: Any) -> Any:
    """The column, perhaps cast, that is looked for in a list; may also be anything else."""
    value = node.value()
    return value.child() if class_name(value) == "Cast" else value


def _mapping(spark: SparkSession, pairs: Iterable[tuple[Any, Any]]) -> Any:
    """A map of Scala, which is a partial function."""
    java_map = java_class(spark, "java.util.HashMap")()
    for key, value in pairs:
        java_map.put(key, value)
    return java_class(spark, "org.apache.spark.api.python.PythonUtils").toScalaMap(java_map)
