"""Durations and points in time as parameters."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.durations import parse_duration


def seconds_of(field: str, value: Any) -> float:
    """The seconds of a ``timedelta``, a number of seconds, or the text of such a number.

    Raises:
        RequestError: REQUEST_INVALID: it is none of them, or not above 0.
    """
    try:
        seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise invalid(
            field,
            f"{value!r} is not a duration above 0: expected a timedelta or a number of seconds",
            f"Write {_example(value)}.",
        )
    return seconds


def _example(value: Any) -> str:
    """The same duration as it is expected, where a text tells one."""
    try:
        duration = parse_duration(value) if isinstance(value, str) else timedelta()
    except ValueError:
        duration = timedelta()
    duration = duration or timedelta(days=2)
    for unit in ("days", "hours", "minutes"):
        count, rest = divmod(duration, timedelta(**{unit: 1}))
        if not rest:
            return f"timedelta({unit}={count}) or {duration.total_seconds():.0f}"
    seconds = f"{duration.total_seconds():g}"
    return f"timedelta(seconds={seconds}) or {seconds}"


def millis_of(name: str, value: Any) -> int:
    """Milliseconds since 1970 of a ``datetime`` or ISO 8601 text; UTC if it has no time zone.

    Raises:
        RequestError: it is not a timestamp.
    """
    if not isinstance(value, datetime):
        try:
            value = datetime.fromisoformat(str(value).strip())
        except ValueError:
            raise invalid(
                name,
                f"{value!r} is not a timestamp",
                "Write ISO 8601 (2026-01-31T06:00:00+00:00). In runs without a logical date ds and "
                "data_interval_start are undefined: use dag_run.start_date or run_after there.",
            ) from None
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return int(value.timestamp() * 1000)
