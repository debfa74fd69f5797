"""Long expressions, such as IN with thousands of constants, are parsed once.

Spark parses and analyses a text wherever it is part of a frame, and each step that follows walks
over everything below it again. So a long expression is handed on as the tree that Spark's parser
made. Long lists of constants in it are sets, as Spark's optimizer makes them (``InSet``): these
have no parts to analyse or to walk over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contract.identifiers import quote
from spark_jobs.engine.analysis.catalyst_nodes import class_name, contains, items
from spark_jobs.engine.analysis.expression_parser import ParsedExpression, parse_expression
from spark_jobs.engine.analysis.expressions import LONG_TERM, LongExpression
from spark_jobs.engine.runtime.java_names import java_class, scala_object
from spark_jobs.engine.runtime.older_spark import column_of_expression

_OPTIMIZER: Final = "org.apache.spark.sql.catalyst.optimizer"
# A member of Spark's TreePattern.
_IN: Final = "IN"
# Long lists are looked for in so many nodes from the root.
_MOST_NODES: Final = 64
_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


def value_alone(frame: DataFrame, parsed: ParsedExpression) -> DataFrame:
    """The value of an expression over ``frame``, as ``value``; it is not parsed again."""
    return frame.select(column_of_expression(parsed.spark, parsed.root).alias("value"))


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
    for before, after in _long_lists(spark, written, analyzed):
        alone = plan.transformExpressions(_mapping(spark, [(analyzed, after)]))
        try:
            found = _as_set(spark, alone, after)
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


def _as_set(spark: SparkSession, plan: Any, node: Any) -> Any:
    """What Spark's optimizer makes of the list ``node``, which is all that ``plan`` evaluates.

    Its items are literals, perhaps cast to the type of the column. Casts to numbers depend on
    nothing else; others may depend on the time, as that of ``'now'`` to TIMESTAMP.
    """
    kind = str(node.value().dataType().simpleString()).partition("(")[0]
    rules = ["ConstantFolding"] if kind in _NUMBERS else []
    for rule in [*rules, "OptimizeIn"]:
        plan = scala_object(spark, f"{_OPTIMIZER}.{rule}").apply(plan)
    return plan.projectList().apply(0).child()


def _long_lists(spark: SparkSession, written: Any, analyzed: Any) -> Iterator[tuple[Any, Any]]:
    """The nodes ``column IN (…)`` near the root whose many items are written as literals.

    ``written`` is the tree of the text, ``analyzed`` what Spark's analyzer made of it. Yields each
    node as it is in either.
    """
    waiting = deque([(written, analyzed)])
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        before, after = waiting.popleft()
        if class_name(before) == class_name(after) == "In":
            if _is_long_list(before, after):
                yield before, after
        elif contains(spark, after, _IN) and after.children().size() <= _MOST_NODES:
            pairs = zip(items(before.children()), items(after.children()), strict=False)
            waiting.extend(pairs)


def _is_long_list(written: Any, analyzed: Any) -> bool:
    is_of_column = class_name(_column_in(analyzed)) == "AttributeReference"
    return is_of_column and written.list().size() > LONG_TERM and written.inSetConvertible()


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
