"""Which partition a run is for, however it was started."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from airflow.sdk.definitions._internal.types import NOTSET, ArgNotSet
from jinja2 import pass_context

from airflow_provider_merge.exceptions import airflow_exception, invalid
from airflow_provider_merge.nothing import kind_of_nothing

# Runs whose date the schedule decides, regardless of their parameters.
_SCHEDULED = ("scheduled", "backfill")


@pass_context
def run_partition(
    context: Mapping[str, Any],
    param: str = "partition",
    tz: str | dt.tzinfo | ArgNotSet = NOTSET,
) -> str:
    """The partition that a run is for, as text.

    Templates of this provider's operators and sensors have it as ``{{ run_partition() }}``. For
    other operators, add it to the DAG's ``user_defined_macros``. In Python, pass the task's
    context.

    It is the first of these that applies: the run's partition key (Airflow 3.2 and later); the
    date of a scheduled or backfill run, as ``YYYY-MM-DD``; the parameter ``param``, if it was
    chosen when the run was triggered; the date of a triggered run. The parameter's default does not
    count. The date is that of the logical date in the time zone ``tz``, such as ``Europe/Berlin``;
    default: that of the DAG's timetable, else of the DAG. Guide: docs/backfills.md.

    Raises:
        AirflowFailException: none applies, ``param`` is not text, a whole number or a date, ``tz``
            is no time zone, one of them is given and is nothing, or a template was imported without
            its context.
    """
    for name, value in (("param", param), ("tz", tz)):
        if not isinstance(value, ArgNotSet) and (kind := kind_of_nothing(name, value)):
            raise _failure(f"{name} is {kind}", f"Give {name} a value, or leave it out.")
    run = context.get("dag_run")
    if run is None:
        raise _failure(
            "the template has no context, and so no run",
            "Import a file of macros with context: {% import 'x.sql' as x with context %}.",
        )
    key = context.get("partition_key") or getattr(run, "partition_key", None)
    if key:
        return str(key)
    logical_date = getattr(run, "logical_date", None)
    if logical_date and _run_type(run) in _SCHEDULED:
        return _date(logical_date, tz, context)
    chosen = (getattr(run, "conf", None) or {}).get(param)
    if chosen is not None and chosen != "":
        return _text(param, chosen)
    if logical_date:
        return _date(logical_date, tz, context)
    raise _failure(
        f"the run has no partition key, no logical date and no chosen parameter {param!r}",
        f"Trigger it with a partition key, a logical date, or a value for {param!r}.",
    )


def _date(moment: dt.datetime, tz: Any, context: Mapping[str, Any]) -> str:
    zone = _dag_zone(context) if isinstance(tz, ArgNotSet) else tz
    try:
        zone = zone if isinstance(zone, dt.tzinfo) else ZoneInfo(str(zone))
    except (ValueError, OSError, LookupError):
        raise _failure(f"{zone!r} is not a time zone", "Write tz='Europe/Berlin'.") from None
    return moment.astimezone(zone).date().isoformat()


def _dag_zone(context: Mapping[str, Any]) -> Any:
    """The time zone that decides when the DAG's days begin."""
    dag = context.get("dag")
    timetable = getattr(dag, "timetable", None)
    for place in (timetable, *_parts(timetable), dag):
        for name in ("timezone", "_timezone"):
            if zone := getattr(place, name, None):
                return zone
    return "UTC"


def _parts(timetable: Any) -> tuple[Any, ...]:
    """Timetables that one is made of: several crons, or a schedule beside assets."""
    found = [getattr(timetable, name, None) for name in ("timetable", "timetables", "_timetables")]
    lists = [each if isinstance(each, list | tuple) else [each] for each in found]
    parts = [each for one in lists for each in one if each is not None]
    return (*parts, *(inner for each in parts for inner in _parts(each)))


def _failure(problem: str, remedy: str) -> Exception:
    return airflow_exception(invalid("run_partition", problem, remedy))


def _run_type(run: Any) -> str:
    kind = getattr(run, "run_type", "")
    return str(getattr(kind, "value", kind))


def _text(param: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | dt.date):
        problem = f"{value!r} is not text, a whole number or a date"
        remedy = "Trigger the run with text such as 2026-01-31."
        raise airflow_exception(invalid(f"params.{param}", problem, remedy))
    return str(value)
