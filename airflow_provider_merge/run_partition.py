"""Which partition a run is for, however it was started."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from jinja2 import pass_context

from airflow_provider_merge.exceptions import airflow_exception, invalid

# Runs whose date the schedule decides, regardless of their parameters.
_SCHEDULED = ("scheduled", "backfill")


@pass_context
def run_partition(context: Mapping[str, Any], param: str = "partition") -> str:
    """The partition that a run is for, as text.

    Templates of this provider's operators have it as ``{{ run_partition() }}``. For other
    operators, add it to the DAG's ``user_defined_macros``. In Python, pass the task's context.

    It is the first of these that applies: the run's partition key (Airflow 3.2 and later); the
    logical date of a scheduled or backfill run, as ``YYYY-MM-DD``; the parameter ``param``, if it
    was chosen when the run was triggered; the logical date of a triggered run. The parameter's
    default does not count. Guide: docs/backfills.md.

    Raises:
        AirflowFailException: none applies, or ``param`` is not text, a whole number or a date.
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
        problem = f"{value!r} is not text, a whole number or a date"
        raise airflow_exception(invalid(f"params.{param}", problem))
    return str(value)
