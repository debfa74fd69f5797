"""Analyses the checks of a statement before any data is read: what they read, and what is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from spark_jobs.contract.row_checks import (
    CHANGES,
    CHECKED_VIEWS,
    NEW,
    NEW_ROWS,
    OLD,
    TARGET,
    RowCheck,
    always_returns_a_row,
)
from spark_jobs.engine.analysis.catalyst import reads_beside_views, view_columns
from spark_jobs.engine.analysis.catalyst_nodes import (
    CURRENT_LIKE,
    PLAN_EXPRESSION,
    class_name,
    contains,
    ids,
    ids_and_names,
    items,
    subquery_plans,
)
from spark_jobs.engine.analysis.opaque_columns import refuse_opaque_reads
from spark_jobs.engine.changes.changed_rows import ChangeShape
from spark_jobs.engine.runtime.java_names import scala_object
from spark_jobs.engine.runtime.older_spark import error_condition
from spark_jobs.engine.source.open_source import OpenSource
from spark_jobs.engine.source.subqueries import empty_views
from spark_jobs.errors import (
    AnalysisError,
    CatalogError,
    ErrorCode,
    JobError,
    NotSupportedError,
    RequestError,
    excerpt,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_LONGEST: Final = 2_000
_NAMES_OF_TIMES: Final = "org.apache.spark.sql.catalyst.optimizer.SpecialDatetimeValues"
# Nodes that return a row for each row of their child.
_SAME_COUNT: Final = ("Project", "Sort", "SubqueryAlias")
_PASSING: Final = ("Project", "Filter", "SubqueryAlias")
_NOT_FOUND: Final = ("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND", "UNRESOLVED_USING_COLUMN")
# Nodes that pass on all columns of their inputs by position, without naming them.
_BY_POSITION: Final = ("Union", "Except", "Intersect", "CTERelationDef")


@dataclass(frozen=True, slots=True)
class CheckedReads:
    """What checks read, so that nothing else is kept.

    ``old`` and ``new`` are the columns of the old and the new rows, with their numbers in the
    table; ``sources`` are the columns of sources by name.
    """

    old: Mapping[str, int]
    new: Mapping[str, int]
    target: bool
    sources: Mapping[str, frozenset[str]]

    def joined(self, other: CheckedReads) -> CheckedReads:
        """What either of both reads of changed rows, and what this one reads besides."""
        old, new = {**other.old, **self.old}, {**other.new, **self.new}
        return replace(self, old=old, new=new)


NOTHING_READ: Final = CheckedReads({}, {}, target=False, sources={})


def reading_changes(shape: ChangeShape) -> CheckedReads:
    """All columns of old and new rows."""
    numbers = {name: number for number, name in enumerate(shape.types)}
    return replace(NOTHING_READ, old=numbers, new=numbers)


def analyzed_checks(
    spark: SparkSession,
    checks: Sequence[RowCheck],
    shape: ChangeShape,
    sources: Mapping[str, OpenSource],
) -> CheckedReads:
    """Check the checks against the schemas. Reads no data.

    Raises:
        JobError: a check is wrong, is not deterministic, or reads what it cannot; names it.
    """
    analysis = _Analysis(spark, shape, sources)
    with empty_views(spark, sources), _empty_changes(spark, shape, views_named(checks)):
        for check in checks:
            analysis.add(check)
    return analysis.reads()


@contextmanager
def checked_views(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """Temporary views within the block."""
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    try:
        yield
    finally:
        for name in frames:
            spark.catalog.dropTempView(name)


def views_named(checks: Sequence[RowCheck]) -> frozenset[str]:
    """The views of changes that checks may read: a text has the name of each that it reads.

    To make one costs as much as to analyse a statement.
    """
    texts = [check.sql.lower() for check in checks]
    return frozenset(view for view in CHECKED_VIEWS if any(view in text for text in texts))


@contextmanager
def _empty_changes(
    spark: SparkSession, shape: ChangeShape, named: Collection[str]
) -> Iterator[None]:
    recorded = spark.createDataFrame([], StructType(shape.recorded_fields()))
    frames = {CHANGES: shape.changes(recorded)} if CHANGES in named else {}
    if not {NEW_ROWS, TARGET}.isdisjoint(named):
        stored = shape.as_table(shape.stored(recorded))
        frames |= {view: stored for view in (NEW_ROWS, TARGET) if view in named}
    with checked_views(spark, frames):
        yield


def passes_rows_on(spark: SparkSession, plan: Any) -> bool:
    """Whether an analysed query returns a row for each row of a view that its conditions select.

    Then it has rows if and only if the conditions select any: no other expression decides that.
    """
    if contains(spark, plan, PLAN_EXPRESSION):
        return False
    while (name := class_name(plan)) in _PASSING:
        plan = plan.child()
    return name == "View"


class _Analysis:
    """What was found so far."""

    def __init__(
        self, spark: SparkSession, shape: ChangeShape, sources: Mapping[str, OpenSource]
    ) -> None:
        self._spark = spark
        self._shape = shape
        self._sources = {name.lower(): name for name in sources}
        self._fields: dict[str, frozenset[str]] = {OLD: frozenset(), NEW: frozenset()}
        self._views: dict[str, frozenset[str]] = {}

    def add(self, check: RowCheck) -> None:
        where = f"check {check.name}"
        try:
            frame = self._spark.sql(check.sql)
        except (ParseException, AnalysisException) as error:
            raise _translated(error, check, where) from None
        plan = frame._jdf.queryExecution().analyzed()
        self._require_repeatable(plan, where)
        if _is_one_row(plan):
            raise always_returns_a_row(where)
        if reads_beside_views(frame):
            raise NotSupportedError(
                f"{where}: it reads something else than changes, new_rows, target and the sources",
                "Make what it reads a source of the statement.",
            )
        read = view_columns(frame)
        refuse_opaque_reads(self._spark, read, where)
        for view, columns in read.items():
            self._views[view] = self._views.get(view, frozenset()) | columns
        for row in self._fields:
            fields = _read_fields(plan, CHANGES, row)
            self._fields[row] |= frozenset(self._shape.types) if fields is None else fields

    def reads(self) -> CheckedReads:
        stored = set(self._fields[NEW]).union(
            *(read for view, read in self._views.items() if view.lower() in (NEW_ROWS, TARGET))
        )
        old = self._fields[OLD] | {name for name in stored if self._shape.keeps(name)}
        sources = {
            self._sources[view.lower()]: read
            for view, read in self._views.items()
            if view.lower() not in CHECKED_VIEWS
        }
        reads_target = TARGET in {view.lower() for view in self._views}
        return CheckedReads(self._numbered(old), self._numbered(stored), reads_target, sources)

    def _numbered(self, names: Collection[str]) -> dict[str, int]:
        numbers = enumerate(self._shape.types)
        return {name: number for number, name in numbers if name in names}

    def _require_repeatable(self, plan: Any, where: str) -> None:
        is_timely = contains(self._spark, plan, CURRENT_LIKE) or _names_times(self._spark, plan)
        if is_timely or not plan.deterministic() or "Sample" in _nodes(plan):
            raise AnalysisError(
                ErrorCode.EXPRESSION_NOT_ALLOWED,
                f"{where}: it is not deterministic: rows that it passes now may fail it later",
                "Leave out random values, samples and the current time; compare with a column or "
                "a constant.",
            )


def _is_one_row(plan: Any) -> bool:
    """Whether a query computes one row of all rows, whatever these are."""
    while (name := class_name(plan)) in _SAME_COUNT or name == "WithCTE":
        plan = plan.plan() if name == "WithCTE" else plan.child()
    return name == "Aggregate" and bool(plan.groupingExpressions().isEmpty())


def _names_times(spark: SparkSession, plan: Any) -> bool:
    """Whether a text such as ``'today'`` stands for a time, as where it is compared with a date."""
    if not scala_object(spark, _NAMES_OF_TIMES).apply(plan).equals(plan):
        return True
    nodes = [plan]
    while nodes:
        node = nodes.pop()
        if any(_names_times(spark, each) for each in subquery_plans(node)):
            return True
        nodes += items(node.children())
    return False


def _nodes(plan: Any) -> set[str]:
    class_names = {class_name(plan)}
    for inner in (*items(plan.children()), *subquery_plans(plan)):
        class_names |= _nodes(inner)
    return class_names


def _translated(error: ParseException | AnalysisException, check: RowCheck, where: str) -> JobError:
    summary = excerpt(str(error).strip().splitlines()[0], _LONGEST)
    problem = f"{where}: {excerpt(check.sql, _LONGEST)!r}: {summary}"
    if isinstance(error, ParseException):
        return RequestError(ErrorCode.SYNTAX_ERROR, problem, "Write one query of Spark SQL.")
    condition = error_condition(error)
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        remedy = (
            "Checks read changes, new_rows, target and the statement's sources, by their names."
        )
        return CatalogError(ErrorCode.TABLE_NOT_FOUND, problem, remedy)
    if condition.startswith(_NOT_FOUND):
        remedy = "changes has operation, clause, old and new; the others have the table's columns."
        return AnalysisError(ErrorCode.COLUMN_NOT_FOUND, problem, remedy)
    return AnalysisError(
        ErrorCode.EXPRESSION_INVALID, problem, "Correct what Spark names in the check."
    )


def _read_fields(plan: Any, view: str, column: str) -> frozenset[str] | None:
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
