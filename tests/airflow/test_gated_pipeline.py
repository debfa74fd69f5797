"""The example ``gated_pipeline``: which days a report is for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from dags_examples import gated_pipeline


@dataclass
class Event:
    """What a run knows of an asset event."""

    extra: dict[str, Any] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("changed", "days"),
    [
        ([["flight_date=2013-01-29"], ["flight_date=2013-01-28"]], ["2013-01-28", "2013-01-29"]),
        ([["flight_date=2013-01-28"], ["flight_date=2013-01-28"]], ["2013-01-28"]),
        ([["flight_date=2013-01-28"], []], ["2013-01-28"]),
        ([[]], []),
    ],
)
def test_every_day_of_every_event_is_reported(changed: list[list[str]], days: list[str]) -> None:
    events = [Event({"partitions": names}) for names in changed]

    found = gated_pipeline.changed_days.function(
        triggering_asset_events={gated_pipeline.FLIGHTS: events}
    )

    assert found == days


def test_a_run_by_hand_has_no_events_and_reports_nothing() -> None:
    assert gated_pipeline.changed_days.function(triggering_asset_events={}) == []
