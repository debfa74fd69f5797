"""Whether a run of a task gets Java's second compiler, from the seconds that the last one took.

The second compiler pays where Spark itself computes for long: in the query of a source, or in a
join of many rows. The first alone ends everything else sooner, a merge into ten million rows too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.result import JobResult

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

XCOM: Final = "both_compilers"
# Seconds by phase above which the second compiler pays, where the first worked alone. It makes
# Spark's own code about twice as fast.
_LONG: Final = {"source": 6.0, "write": 30.0}
_TIMES_AS_FAST: Final = 2.0


def wants_both(context: Context) -> bool:
    """Whether the last run of this task, with an earlier date, took long enough; False if none.

    Where no run of the DAG has succeeded yet, nothing is asked: Airflow would log an error.
    """
    ti = context["ti"]
    try:
        if not context.get("prev_start_date_success"):
            return False
        return bool(
            ti.xcom_pull(
                task_ids=ti.task_id,
                key=XCOM,
                map_indexes=ti.map_index,
                include_prior_dates=True,
            )
        )
    except Exception as error:  # noqa: BLE001 - no task fails for want of a hint
        log.warning("What the last run took is not known: %s", error)
        return False


def note_for_next(context: Context, had_both: bool, results: Iterable[JobResult]) -> None:
    """Tell the next run of this task what this one took."""
    seconds = [result.metrics.seconds for result in results]
    share = 1 / _TIMES_AS_FAST if had_both else 1.0
    is_long = any(
        sum(each.get(phase, 0.0) for each in seconds) > limit * share
        for phase, limit in _LONG.items()
    )
    try:
        context["ti"].xcom_push(XCOM, is_long)
    except Exception as error:  # noqa: BLE001 - no task fails for want of a hint
        log.warning("The next run will not know what this one took: %s", error)
