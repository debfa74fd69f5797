"""Timestamps as parameters of sensors."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow_provider_merge.exceptions import invalid


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
