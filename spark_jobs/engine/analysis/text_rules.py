"""What the texts of a request may do: compute rows, unless its limits say more. Driver only.

A query is one plan of nodes that only read. What it calls are functions of Spark's own that call
nothing by name. Everything is checked before anything of it is resolved: looking a function up may
already load a jar.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from spark_jobs.contract.request import FileSource, JobRequest, SqlSource
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.text_limits import (
    CODE_FUNCTIONS,
    FILE_FUNCTIONS,
    TextLimits,
    code_refused,
    expressions,
    not_a_query,
)
from spark_jobs.engine.analysis.catalyst_nodes import sql_parser, texts
from spark_jobs.engine.analysis.query_plans import (
    ParsedText,
    Relation,
    parsed_expression,
    parsed_query,
)
from spark_jobs.engine.runtime.java_names import scala_object
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.file_index import FileIndex

# The nodes of a parsed query that only read rows and compute new ones.
_READS: Final = frozenset(
    (
        *("Aggregate", "CTERelationDef", "CTERelationRef", "DataFrameDropColumns", "Deduplicate"),
        *("Distinct", "Except", "Expand", "Filter", "Generate", "GlobalLimit", "Intersect", "Join"),
        *("LateralJoin", "LimitAll", "LocalLimit", "LocalRelation", "Offset", "OneRowRelation"),
        *(
            "PipeOperator",
            "Pivot",
            "Project",
            "Range",
            "RebalancePartitions",
            "RelationTimeTravel",
            "Repartition",
        ),
        *("RepartitionByExpression", "ResolvedHint", "ResolvedInlineTable", "Sample", "Sort"),
        *("Subquery", "SubqueryAlias", "Tail", "Union", "Unpivot", "UnresolvedHaving"),
        *("UnresolvedHint", "UnresolvedInlineTable", "UnresolvedRelation"),
        *(
            "UnresolvedSubqueryColumnAliases",
            "UnresolvedTableValuedFunction",
            "UnresolvedTVFAliases",
        ),
        *("UnresolvedWith", "View", "Window", "WithCTE", "WithWindowDefinition"),
    )
)
# SELECT TRANSFORM … USING, MAP and REDUCE; names that are computed.
_RUNS: Final = frozenset(("ScriptTransformation", "PlanWithUnresolvedIdentifier"))
_REGISTRY: Final = "org.apache.spark.sql.catalyst.analysis.{}"


def require_plain_texts(spark: SparkSession | None, request: JobRequest) -> None:
    """Check all texts of a request, and the files of its sources.

    A text that cannot be parsed is left to who runs it. Without a session, nothing is run.

    Raises:
        NotSupportedError: naming the text and what it does.
    """
    if spark is None:
        return
    rules = _Rules(spark, request.text_limits)
    for source in request.sources:
        if isinstance(source, SqlSource):
            rules.require_query(source.query, f"query of {source_text(source)}")
        elif isinstance(source, FileSource):
            rules.require_file(source)
    for where, text in expressions(request.statement):
        rules.require_expression(text, where)
    for check in request.guards.checks if request.guards else ():
        rules.require_query(check.sql, f"check {check.name}")


def require_read_files(
    spark: SparkSession, limits: TextLimits, where: str, files: Iterable[FileIndex]
) -> None:
    """Check the files that Spark has found for a query: their folders, as it knows them now.

    Raises:
        NotSupportedError: they may not be read.
    """
    if limits.source_prefixes is not None:
        for place in (place for index in files for place in index.roots):
            limits.require_place(where, place, _default_file_system(spark))


@dataclass(frozen=True, slots=True)
class _Rules:
    spark: SparkSession
    limits: TextLimits

    def require_query(self, text: str, where: str) -> None:
        try:
            query = parsed_query(self.spark, text)
        except ParseException:
            return
        others = sorted(query.nodes - _READS - _RUNS)
        if others:
            raise not_a_query(where, ", ".join(others))
        self._require_plain(query, where)

    def require_expression(self, text: str, where: str) -> None:
        try:
            found = parsed_expression(self.spark, text)
        except ParseException:
            return
        self._require_plain(found, where)

    def require_file(self, source: FileSource) -> None:
        if self.limits.source_prefixes is not None:
            self._require_place(source_text(source), source.path, source.format, source.options)

    def _require_place(
        self, where: str, place: str, file_format: str, options: Collection[str]
    ) -> None:
        default = _default_file_system(self.spark)
        self.limits.require_file(where, place, default, file_format, options)

    def _require_plain(self, found: ParsedText, where: str) -> None:
        if not self.limits.allow_code:
            for problem in self._code(found):
                raise code_refused(where, problem)
        if self.limits.source_prefixes is not None:
            self._require_files(found, where)

    def _code(self, found: ParsedText) -> Iterator[str]:
        """What in a text runs code, or may."""
        if "ScriptTransformation" in found.nodes:
            yield "it runs a program, with TRANSFORM, MAP or REDUCE"
        if found.computes_names:
            yield "it computes a name, with IDENTIFIER"
        names = {name: name.lower() for name in sorted(found.functions)}
        for name, lower in names.items():
            if lower in CODE_FUNCTIONS:
                yield f"the function {name} runs code"
        if names:
            own = _own_functions(self.spark)
            for name in (name for name, lower in names.items() if lower not in own):
                if _may_be_known(self.spark, name):
                    yield f"{name} is not a function of Spark's own"
        for relation in found.relations:
            if _names_class(relation):
                yield f"it names a class, {relation.parts[0]}"

    def _require_files(self, found: ParsedText, where: str) -> None:
        for name in sorted(found.functions):
            if name.lower() in FILE_FUNCTIONS:
                raise NotSupportedError(
                    f"{where}: the function {name} may read a file",
                    "Leave it out where only some files may be read.",
                )
        if found.computes_names:
            raise NotSupportedError(
                f"{where}: it computes a name, with IDENTIFIER",
                "Write the name out, so that it can be compared with [merge] source_prefixes.",
            )
        for relation in found.relations:
            # Jobs have no catalog in their session: a name of two parts is a format and a path.
            if len(relation.parts) > 1:
                kind, place = relation.parts[0], relation.parts[-1]
                self._require_place(where, place, kind, relation.options)


def _default_file_system(spark: SparkSession) -> str:
    """The URI of the file system of paths without a scheme."""
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    return str(configuration.get("fs.defaultFS", "file:///"))


def _names_class(relation: Relation) -> bool:
    """Whether the format of files is named by its class, with all dots in one part."""
    return len(relation.parts) == 2 and "." in relation.parts[0]


def _may_be_known(spark: SparkSession, name: str) -> bool:
    """Whether a function is registered; of an unknown one, Spark says best what it takes."""
    state = spark._jsparkSession.sessionState()
    try:
        identifier = sql_parser(spark).parseFunctionIdentifier(name)
        return bool(identifier.database().isDefined() or state.catalog().functionExists(identifier))
    except PySparkException:
        return True


def _own_functions(spark: SparkSession) -> frozenset[str]:
    return _functions_of(str(spark.sparkContext.applicationId))


@lru_cache(1)
def _functions_of(_: str) -> frozenset[str]:
    """The names of the functions that the running Spark brings, in lower case."""
    spark = SparkSession.builder.getOrCreate()
    names: Iterable[str] = ()
    for name in ("FunctionRegistry", "TableFunctionRegistry"):
        builtin = scala_object(spark, _REGISTRY.format(name)).builtin()
        names = (*names, *texts(builtin.listFunction()))
    return frozenset(names)
