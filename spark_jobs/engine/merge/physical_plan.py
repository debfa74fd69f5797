"""The physical plan of a statement: which one runs it and why, as its source allows.

The plans without a join read the source on the driver first, which may show that they cannot run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.types import NullType

from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.merge.general_plan import GeneralPlan
from spark_jobs.engine.merge.located_plan import LocatedPlan
from spark_jobs.engine.merge.prepared_clauses import (
    copied_columns,
    prepared_clauses,
    why_not_prepared,
)
from spark_jobs.engine.merge.processors import RowChangeProcessor
from spark_jobs.engine.merge.source_rows import source_rows
from spark_jobs.engine.pruning.dynamic_filters import comparable_keys
from spark_jobs.engine.source.materialized import MaterializedSource
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.writes import WriteLayout

if TYPE_CHECKING:
    from spark_jobs.engine.analysis.expressions import JoinKey
    from spark_jobs.engine.merge.source_rows import SourceRows
    from spark_jobs.spi.storage import WarehouseStorage


# join: Spark joins source and target. located: tasks that read target files look their rows up in
# the source, and Spark evaluates the clauses on what they find. prepared: the same, but the clauses
# have been evaluated on the source before.
Plan = Literal["join", "located", "prepared"]
_MOST_ROWS: Final = 2_000_000
_MOST_COPIED_ROWS: Final = 8_000_000


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """``broadcast``: the maximum size in bytes of a source that is sent to every executor.

    ``filter_share``: the maximum number of source rows per target row at which the target is read
    with a dynamic filter; with more, the filter would let most rows pass. 0: never.
    ``located_share``: the same for the plans ``located`` and ``prepared``. ``copied`` and
    ``copied_share`` are used in place of ``broadcast`` and ``located_share`` if nothing has to be
    evaluated for a match and tasks map the source from a local disk. ``plan``: the physical plan
    of every statement, which fails where that plan cannot run it; None: the one that suits the
    statement. If clauses cannot be evaluated on some row of the source, which may be one that
    changes nothing, ``located`` runs in place of ``prepared`` and finds out, even if that is asked
    for.
    """

    broadcast: int = 150 * 1024 * 1024
    filter_share: float = 0.25
    located_share: float = 0.1
    copied: int = 512 * 1024 * 1024
    copied_share: float = 0.5
    plan: Plan | None = None


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


def physical_plan(
    general: GeneralPlan,
    choice: PlanChoice,
    storage: WarehouseStorage,
    folder: str,
    *,
    is_forced: bool,
) -> tuple[GeneralPlan | LocatedPlan, PlanChoice]:
    """The plan of ``choice``, or one that needs less if the source cannot be read for it.

    Files of the plan go to ``folder``, which is relative to the workspace ``storage``.

    Raises:
        PySparkException, Py4JError, NotSupportedError: a forced plan cannot read the source.
    """
    source, keys = general.source, comparable_keys(general.merge)
    if choice.plan == "join" or source is None:
        return general, choice
    if choice.plan == "prepared":
        try:
            keyed_rows, prepared = prepared_clauses(general, source, keys)
        except NotSupportedError:
            choice = PlanChoice("located", "a column of the source is too large to be looked up")
        except (PySparkException, Py4JError):
            # Perhaps on a row whose match does not exist, or takes no effect.
            choice = PlanChoice("located", "a clause fails on a row of the source")
        else:
            return LocatedPlan(general, keyed_rows, keys, storage, folder, prepared), choice
    try:
        keyed_rows = _rows(general, source, keys)
    except (PySparkException, Py4JError, NotSupportedError):
        if is_forced:
            raise
        # Perhaps they are larger than spark.driver.maxResultSize, or than was estimated.
        return general, PlanChoice("join", "the driver cannot read the source's rows")
    return LocatedPlan(general, keyed_rows, keys, storage, folder), choice


def _rows(general: GeneralPlan, source: MaterializedSource, keys: Sequence[JoinKey]) -> SourceRows:
    merge = general.merge
    names = sorted(merge.source_columns)
    return source_rows(source, names, keys, merge.source_alias, general.moment)
