"""Resolves users' expressions with Spark's own parser and analyzer.

The text is never re-rendered. There is one possible edit: where a clause sees only one side, a name
that the other side has too is qualified with the alias of the visible side, because the expression
is evaluated on the joined frame, which has both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DataType

from spark_jobs.contract.sql_text import RESERVED_PREFIX
from spark_jobs.engine.analysis.bound_expressions import bound_value
from spark_jobs.engine.analysis.catalyst import (
    ReadingExpression,
    SelectedExpression,
    attribute_ids,
    compared_in_condition,
    compared_in_value,
    filter_condition,
    selected_conjuncts,
    selected_expressions,
    selected_value,
)
from spark_jobs.engine.analysis.char_columns import refuse_unpadded
from spark_jobs.engine.analysis.column_references import qualified, qualified_column, without_added
from spark_jobs.engine.analysis.expression_errors import NOT_A_ROW_EXPRESSION, ExpressionErrors
from spark_jobs.engine.analysis.expression_parser import (
    Conjunct,
    ParsedExpression,
    conjuncts,
    parse_expression,
)
from spark_jobs.engine.analysis.expressions import Expression, JoinKey, LongExpression, Side
from spark_jobs.engine.analysis.long_expressions import long_expression, value_alone
from spark_jobs.engine.analysis.opaque_columns import refuse_opaque, refuse_opaque_reads
from spark_jobs.engine.runtime.sql_text import column_of, find_name
from spark_jobs.errors import AnalysisError, ErrorCode, JobError, RequestError


class ExpressionAnalyzer:
    """Analyses expressions over a target and, in MERGE, a source."""

    def __init__(self, spark: SparkSession, target: Side, source: Side | None = None) -> None:
        self._spark = spark
        self._target = target
        self._source = source
        self._errors = ExpressionErrors(has_source=source is not None)
        self._sides = {"target": [target]}
        self._analyzed: dict[tuple[str, str], Expression] = {}
        # A frame that selects the expression, and where among what it selects.
        self._analyzed_frames: dict[tuple[str, str], tuple[DataFrame, int]] = {}
        self._together: dict[tuple[str, str], tuple[DataType, SelectedExpression]] = {}
        self._names: dict[str, bool] = {}
        self._trees: dict[str, ParsedExpression] = {}
        self._owners = _owned_by(target)
        self._frames = {"target": target.frame.alias(target.alias)}
        if source is not None:
            self._owners |= _owned_by(source)
            self._sides |= {"source": [source], "both": [target, source]}
            self._frames["source"] = source.frame.alias(source.alias)
            self._frames["both"] = self._frames["target"].crossJoin(self._frames["source"])
        lengths = {side.alias: side.char_lengths for side in (target, source) if side is not None}
        self._char_columns = {
            key: (f"{alias}.{name}" if source else name, lengths[alias][name])
            for key, (alias, name) in self._owners.items()
            if name in lengths[alias]
        }

    def analyze_together(self, texts: Iterable[str], sees: str) -> None:
        """Let Spark look at expressions at once; ``analyze`` tells what is wrong with one."""
        parsed = {text: self._parsed_alike(text, sees) for text in dict.fromkeys(texts)}
        chosen = {text: each for text, each in parsed.items() if each is not None}
        if len(chosen) < 2 or self._char_columns:
            return
        shown = [without_added(each, self._target, self._source, sees) for each in chosen.values()]
        names = [f"{RESERVED_PREFIX}value_{number}" for number in range(len(shown))]
        try:
            frame = self._frames[sees].selectExpr(*map("{}\n\n AS {}".format, shown, names))
            types = [field.dataType for field in frame.schema]
        except (ParseException, AnalysisException):
            return
        selected = selected_expressions(frame)
        is_plain = not any(each in NOT_A_ROW_EXPRESSION for each in selected[0].operators)
        # Spark lets a name mean another value of the same SELECT.
        is_plain &= all(key in self._owners for each in selected for key in each.attributes)
        if is_plain and len(selected) == len(types) == len(chosen):
            for number, text in enumerate(chosen):
                self._analyzed_frames[text, sees] = frame, number
                self._together[text, sees] = types[number], selected[number]

    def _parsed_alike(self, text: str, sees: str) -> ParsedExpression | None:
        """The tree of an expression that Spark's analyzer can look at beside others."""
        if qualified_column(text, self._sides[sees]) is not None:
            return None
        try:
            parsed = self._parsed(text, "expression")
        except JobError:
            return None
        return None if parsed.has_subquery or parsed.has_many_parts else parsed

    def analyze(self, text: str, sees: str, where: str) -> Expression:
        """Analyse ``text``; ``sees`` is ``both``, ``target`` or ``source``.

        ``where`` names the expression in errors ("condition of clause 2").

        Raises:
            RequestError: SYNTAX_ERROR.
            AnalysisError: COLUMN_NOT_FOUND, AMBIGUOUS_REFERENCE, TYPE_MISMATCH,
                EXPRESSION_NOT_ALLOWED (subquery, aggregate, window, generator) or
                EXPRESSION_INVALID.
        """
        known = self._analyzed.get((text, sees)) or self._plain(text, sees, where)
        if known is None:
            known = self._analyzed_by_spark(text, sees, where)
        self._analyzed[text, sees] = known
        return known

    def _plain(self, text: str, sees: str, where: str) -> Expression | None:
        """``text`` if it is just a column with its alias."""
        reference = qualified_column(text, self._sides[sees])
        if reference is None or not self._is_name(reference.alias):
            return None
        self._refuse_unusable([(reference.side.alias, reference.column)], where)
        return replace(self.column_of(reference.side, reference.column), text=text)

    def _is_name(self, alias: str) -> bool:
        """Whether the parser takes ``alias``, before a dot, for a name."""
        if alias not in self._names:
            try:
                names = parse_expression(self._spark, f"{alias}.x").names
            except ParseException:
                names = ()
            self._names[alias] = [len(each.parts) for each in names] == [2]
        return self._names[alias]

    def _analyzed_by_spark(self, text: str, sees: str, where: str) -> Expression:
        given, parsed = text, self._parsed(text, where)
        if parsed.has_subquery:
            raise self._errors.not_allowed(where, text, "a subquery")
        text = without_added(parsed, self._target, self._source, sees)
        if (given, sees) in self._together:
            value_type, selected = self._together[given, sees]
            self._refuse_unusable([self._owners[key] for key in selected.attributes], where)
            return self._expression(text, parsed, sees, value_type, selected)
        try:
            frame = self._frame_of(text, parsed, sees)
            self._analyzed_frames[given, sees] = frame, 0
            value_type = frame.schema[0].dataType
        except (ParseException, AnalysisException) as error:
            self._refuse_opaque_names(parsed, sees, where)
            raise self._errors.translated(error, text, where) from None
        selected = selected_expressions(frame)[0]
        for operator in selected.operators:
            if operator in NOT_A_ROW_EXPRESSION:
                raise self._errors.not_allowed(where, text, NOT_A_ROW_EXPRESSION[operator])
        self._refuse_unusable([self._owners[key] for key in selected.attributes], where)
        if not self._char_columns.keys().isdisjoint(selected.attributes):
            refuse_unpadded(compared_in_value(frame), self._char_columns, where)
        expression = self._expression(text, parsed, sees, value_type, selected)
        if parsed.has_many_parts:
            return replace(expression, long=self._long(expression.text, parsed, frame))
        return expression

    def _expression(
        self,
        text: str,
        parsed: ParsedExpression,
        sees: str,
        value_type: DataType,
        selected: SelectedExpression,
    ) -> Expression:
        """The expression ``text``, for which Spark's analyzer has ``selected``."""
        owned = [self._owners[key] for key in selected.attributes]
        owned += self._named(parsed, sees)
        return Expression(
            text=qualified(text, parsed, self._target, self._source, sees),
            target_columns=frozenset(name for alias, name in owned if alias == self._target.alias),
            source_columns=frozenset(name for alias, name in owned if alias != self._target.alias),
            type=value_type,
            deterministic=selected.deterministic,
            is_long=parsed.is_long,
        )

    def _frame_of(self, text: str, parsed: ParsedExpression, sees: str) -> DataFrame:
        """A frame of the value of ``text``, which is ``parsed`` unless names were qualified."""
        if parsed.has_many_parts and text == parsed.text:
            return value_alone(
                self._frames[sees], parsed, with_all_constants=bool(self._char_columns)
            )
        # Behind the text, so that errors name positions in it; it may end in a comment.
        return self._frames[sees].selectExpr(f"{text}\n\n AS value")

    def _long(self, text: str, parsed: ParsedExpression, frame: DataFrame) -> LongExpression:
        name = f"{RESERVED_PREFIX}long_{len(self._analyzed)}"
        return long_expression(text, parsed, name, frame)

    def _named(self, parsed: ParsedExpression, sees: str) -> Iterator[tuple[str, str]]:
        """The columns that a text names, also where Spark's analyzer knows the value without them.

        So it does for ``n < 9223372036854775808`` of a BIGINT. The text still has to resolve.
        """
        sides = self._sides[sees]
        for name in parsed.names:
            first, *more = name.parts
            of_alias = [side for side in sides if more and side.alias.lower() == first.lower()]
            wanted = more[0] if of_alias else first
            columns = [
                (s.alias, column)
                for s in of_alias or sides
                if (column := find_name(wanted, s.columns))
            ]
            if len(columns) == 1 and columns[0][1] not in self._target.added:
                yield columns[0]

    def analyze_where(self, text: str) -> Expression:
        """Analyse the WHERE of a statement without a source; it may have subqueries over views.

        Raises:
            RequestError: SYNTAX_ERROR.
            AnalysisError: as ``analyze``; TYPE_MISMATCH if it is not boolean.
            CatalogError: TABLE_NOT_FOUND if a subquery reads a table that is not a view.
        """
        if not self._parsed(text, "WHERE").has_subquery:
            return self.analyze_condition(text, "target", "WHERE")
        try:
            frame = self._frames["target"].where(text)
            condition = filter_condition(frame)
        except (ParseException, AnalysisException) as error:
            raise self._errors.translated(error, text, "WHERE") from None
        if not self._char_columns.keys().isdisjoint(condition.attributes):
            refuse_unpadded(compared_in_condition(frame), self._char_columns, "WHERE")
        return self._with_subqueries(condition, text, BooleanType(), "WHERE")

    def analyze_value(self, text: str, where: str) -> Expression:
        """Analyse a value in a statement without a source; it may have scalar subqueries.

        Raises:
            RequestError: SYNTAX_ERROR.
            AnalysisError: as ``analyze``; EXPRESSION_NOT_ALLOWED for correlated subqueries, IN and
                EXISTS.
            CatalogError: TABLE_NOT_FOUND if a subquery reads a table that is not a view.
        """
        if not self._parsed(text, where).has_subquery:
            return self.analyze(text, "target", where)
        try:
            frame = self._frames["target"].selectExpr(f"{text}\n\n AS value")
            value, value_type = selected_value(frame), frame.schema[0].dataType
        except (ParseException, AnalysisException) as error:
            raise self._errors.translated(error, text, where) from None
        if bound_value(frame).has_predicate_subquery:
            raise self._errors.not_allowed(where, text, "IN, EXISTS or a subquery about the row")
        if not self._char_columns.keys().isdisjoint(value.attributes):
            refuse_unpadded(compared_in_value(frame), self._char_columns, where)
        return self._with_subqueries(value, text, value_type, where)

    def _with_subqueries(
        self, found: ReadingExpression, text: str, value_type: DataType, where: str
    ) -> Expression:
        if found.other_relations:
            raise AnalysisError(
                ErrorCode.EXPRESSION_NOT_ALLOWED,
                f"{where}: {text!r} reads data that is not a source of the statement",
                "Add the table or the files to the sources and read them by that name.",
            )
        self._refuse_unusable([self._owners[key] for key in found.attributes], where)
        refuse_opaque_reads(self._spark, found.view_columns, where)
        return Expression(
            text=text,
            target_columns=frozenset(self._owners[key][1] for key in found.attributes),
            source_columns=frozenset(),
            type=value_type,
            deterministic=found.deterministic,
            subquery_columns=found.view_columns,
        )

    def analyze_condition(self, text: str, sees: str, where: str) -> Expression:
        """As ``analyze``, for an expression that must be boolean.

        Raises:
            AnalysisError: TYPE_MISMATCH, and what ``analyze`` raises.
        """
        expression = self.analyze(text, sees, where)
        if expression.type.simpleString() not in ("boolean", "void"):
            raise AnalysisError(
                ErrorCode.TYPE_MISMATCH,
                f"{where}: {text!r} is {expression.type.simpleString()}, not boolean",
                "Write a condition, such as a comparison.",
            )
        return expression

    def _parsed(self, text: str, where: str) -> ParsedExpression:
        if text not in self._trees:
            self._trees[text] = self._newly_parsed(text, where)
        return self._trees[text]

    def _newly_parsed(self, text: str, where: str) -> ParsedExpression:
        try:
            parsed = parse_expression(self._spark, text)
        except ParseException as error:
            raise self._errors.translated(error, text, where) from None
        if parsed.is_named:
            raise RequestError(
                ErrorCode.SYNTAX_ERROR,
                f"{where}: {text!r} ends in a word that is not part of the expression",
                "Remove the word; an expression takes no alias here.",
            )
        return parsed

    def conjuncts(self, text: str, sees: str) -> list[tuple[Expression, JoinKey | None]]:
        """The conjuncts of a condition, each with its join key if it is one.

        ``text`` has been analysed before.
        """
        terms = list(conjuncts(self._parsed(text, "condition")))
        parts = self._parts(text, [each.parsed for each in terms], sees)
        return [(part, self._join_key(each, sees)) for part, each in zip(parts, terms, strict=True)]

    def _parts(self, text: str, parts: Sequence[ParsedExpression], sees: str) -> list[Expression]:
        """The ``parts`` of a condition, which was analysed as a whole."""
        if len(parts) == 1:
            return [self.analyze(text, sees, "condition")]
        analyzed = selected_conjuncts(*self._analyzed_frames[text, sees])
        if len(analyzed) != len(parts):  # before Spark 4, BETWEEN is two comparisons
            return [self.analyze(each.text, sees, "condition") for each in parts]
        return [
            self._plain(each.text, sees, "condition") or self._part(each, selected, sees)
            for each, selected in zip(parts, analyzed, strict=True)
        ]

    def _part(
        self, parsed: ParsedExpression, selected: SelectedExpression, sees: str
    ) -> Expression:
        text = without_added(parsed, self._target, self._source, sees)
        return self._expression(text, parsed, sees, BooleanType(), selected)

    def _join_key(self, conjunct: Conjunct, sees: str) -> JoinKey | None:
        if conjunct.sides is None or sees != "both":
            return None
        left, right = (self.analyze(side, sees, "condition") for side in conjunct.sides)
        for target, source in ((left, right), (right, left)):
            plain = len(target.target_columns) == 1 and not target.source_columns
            if plain and source.source_columns and not source.target_columns:
                column = next(iter(target.target_columns))
                if self._is_plain(target.text, column):
                    return JoinKey(column, target.type, source, self._plain_column(source))
        return None

    def _plain_column(self, source: Expression) -> str | None:
        column = next(iter(source.source_columns))
        is_one = len(source.source_columns) == 1 and self._is_plain(source.text, column)
        return column if is_one else None

    def _is_plain(self, text: str, column: str) -> bool:
        if self._plain(text, "both", "condition"):
            return True
        names = parse_expression(self._spark, text).names
        whole = len(names) == 1 and names[0].parts[-1].lower() == column.lower()
        return whole and not set(text) & set("()+-*/%|&^~ ")

    def column_of(self, side: Side, name: str) -> Expression:
        """A plain reference to a column that is known to exist."""
        target = side is self._target
        return Expression(
            text=column_of(side.alias, name),
            target_columns=frozenset([name] if target else []),
            source_columns=frozenset([] if target else [name]),
            type=side.frame.schema[name].dataType,
            deterministic=True,
            source_column=None if target else name,
        )

    def _refuse_opaque_names(self, parsed: ParsedExpression, sees: str, where: str) -> None:
        """Refuse what fails because of a column that is not what it is in the frame."""
        names = [part for name in parsed.names for part in name.parts[:2]]
        for side in self._sides[sees]:
            refuse_opaque(side.opaque, names, where)

    def _refuse_unusable(self, owned: Sequence[tuple[str, str]], where: str) -> None:
        """Refuse columns that the statement adds, and those of types that Spark does not have."""
        for side in self._sides["both" if self._source else "target"]:
            refuse_opaque(side.opaque, [name for a, name in owned if a == side.alias], where)
        for alias, name in owned:
            if alias == self._target.alias and name in self._target.added:
                raise AnalysisError(
                    ErrorCode.COLUMN_NOT_FOUND,
                    f"{where}: {name} is not a column of the target before the statement adds it",
                    "Name the source's column.",
                )


def _owned_by(side: Side) -> dict[int, tuple[str, str]]:
    return {key: (side.alias, name) for key, name in attribute_ids(side.frame).items()}
