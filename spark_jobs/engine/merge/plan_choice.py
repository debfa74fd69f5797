"""Which physical plan runs a statement, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import NullType

from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.merge.plan_limits import Plan, PlanLimits
from spark_jobs.engine.merge.prepared_clauses import copied_columns, why_not_prepared
from spark_jobs.engine.merge.processors import RowChangeProcessor
from spark_jobs.engine.pruning.dynamic_filters import comparable_keys
from spark_jobs.engine.source.materialized import MaterializedSource
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.writes import WriteLayout

_MOST_ROWS: Final = 2_000_000
_MOST_COPIED_ROWS: Final = 8_000_000


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """A physical plan, and the reason for it as a text for people."""

    plan: Plan
    reason: str

    def __str__(self) -> str:
        """The plan and the reason in one line."""
        return f"{self.plan}: {self.reason}"


def chosen_plan(
    merge: AnalyzedMerge,
    processor: RowChangeProcessor,
    source: MaterializedSource | None,
    update_layout: WriteLayout | None,
    target_rows: int,
    limits: PlanLimits,
    *,
    has_arrow_rows: bool,
    is_local: bool,
) -> PlanChoice:
    """The plan that ``limits`` force, or the one that suits the statement.

    ``target_rows`` are in the files that are read. ``has_arrow_rows``: tasks can read target rows
    and their row ids without the JVM. ``is_local``: the workspace is on a local disk.

    Raises:
        NotSupportedError: the forced plan cannot run the statement.
    """
    if limits.plan == "join":
        return PlanChoice("join", "it is asked for")
    unprepared = why_not_prepared(merge, comparable_keys(merge))
    copies = is_local and not unprepared and copied_columns(merge, processor) is not None
    most = (limits.copied, _MOST_COPIED_ROWS) if copies else (limits.broadcast, _MOST_ROWS)
    obstacle = _obstacle(merge, processor, source, update_layout, *most)
    if obstacle is None and not has_arrow_rows:
        obstacle = "the connector reads rows only through Spark"
    if limits.plan is not None:
        problem = obstacle if limits.plan == "located" else obstacle or unprepared
        if problem is not None:
            raise NotSupportedError(
                f"The plan {limits.plan} cannot run this statement: {problem}.",
                "Leave the choice of the plan to the engine.",
            )
        return PlanChoice(limits.plan, "it is asked for")
    if obstacle is not None or source is None:
        return PlanChoice("join", obstacle or "there is no source")
    share = limits.copied_share if copies else limits.located_share
    if source.row_count > share * target_rows:
        return PlanChoice("join", "the source has many rows beside the target")
    if unprepared is not None:
        return PlanChoice("located", unprepared)
    return PlanChoice("prepared", "the clauses read only the source")


def _obstacle(
    merge: AnalyzedMerge,
    processor: RowChangeProcessor,
    source: MaterializedSource | None,
    update_layout: WriteLayout | None,
    most_bytes: int,
    most_rows: int,
) -> str | None:
    """Why no task can look target rows up in the source; None: it can."""
    if source is None:
        return "the statement has no source"
    if merge.has("not_matched_by_source"):
        return "NOT MATCHED BY SOURCE needs every row of the target"
    if update_layout is None or update_layout.file_ordinal is None:
        return "the table's changes are not stored file by file"
    if any(processor.splits(case) for case in merge.cases):
        return "an UPDATE assigns columns that decide where a row is stored"
    if not comparable_keys(merge):
        return "ON compares no columns whose values can be looked up"
    if source.byte_size > most_bytes or source.row_count > most_rows:
        return "the source is too large to be looked up"
    parts = [merge.on, *(each for case in merge.cases for each in case.expressions)]
    if not all(each.deterministic for each in parts):
        return "a value is not deterministic"
    kinds = [source.frame.schema[name].dataType for name in merge.source_columns]
    if any(isinstance(kind, NullType) for kind in kinds):
        return "a source column has no type"
    return None
