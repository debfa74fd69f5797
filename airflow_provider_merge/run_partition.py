"""Which partition a run is for, whichever way the run came about."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from jinja2 import pass_context

from airflow_provider_merge.exceptions import airflow_exception, invalid

# Runs whose date the schedule decides, whatever was given to them.
_SCHEDULED = ("scheduled", "backfill")


@pass_context
def run_partition(context: Mapping[str, Any], param: str = "partition") -> str:
    """The value that names the run's partition, as text.

    In templates of this provider's operators it is there as ``{{ run_partition() }}``; for others,
    name it among the DAG's ``user_defined_macros``. In Python, give it the task's context.

    The first that there is: the run's partition key (Airflow 3.2 and later); the run's logical
    date as ``YYYY-MM-DD``, for a scheduled run or one of a backfill; the parameter ``param``, if it
    was chosen when the run was triggered; the logical date of such a run. A default that the DAG
    has for the parameter is nobody's choice.

    Raises:
        AirflowFailException: the run has none of them, or ``param`` is no text, number or date.
    """
    run = context.get("dag_run")
    key = context.get("partition_key") or getattr(run, "partition_key", None)
    if key:
        return str(key)
    date = context.get("ds")
    if date and _run_type(run) in _SCHEDULED:
        return str(date)
    chosen = (getattr(run, "conf", None) or {}).get(param)
    if chosen is not None and chosen != "":
        return _text(param, chosen)
    if date:
        return str(date)
    raise airflow_exception(
        invalid(
            "run_partition",
            f"the run has no partition key, no logical date and no chosen parameter {param!r}",
            f"Trigger it with a partition key, a logical date, or a value for {param!r}.",
        )
    )


def _run_type(run: Any) -> str:
    kind = getattr(run, "run_type", "")
    return str(getattr(kind, "value", kind))


def _text(param: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | dt.date):
        problem = f"{value!r} is no text, whole number or date"
        raise airflow_exception(invalid(f"params.{param}", problem))
    return str(value)
