"""The physical plan of a statement, as it was chosen or as its source allows.

The plans without a join read the source on the driver first, which may show that they cannot run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_jobs.engine.merge.general_plan import GeneralPlan
from spark_jobs.engine.merge.located_plan import LocatedPlan
from spark_jobs.engine.merge.plan_choice import PlanChoice
from spark_jobs.engine.merge.prepared_clauses import prepared_clauses
from spark_jobs.engine.merge.source_rows import source_rows
from spark_jobs.engine.pruning.dynamic_filters import comparable_keys
from spark_jobs.errors import NotSupportedError

if TYPE_CHECKING:
    from spark_jobs.engine.analysis.expressions import JoinKey
    from spark_jobs.engine.merge.source_rows import SourceRows
    from spark_jobs.engine.source.materialized import MaterializedSource
    from spark_jobs.spi.storage import WarehouseStorage


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
