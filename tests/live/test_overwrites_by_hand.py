"""Two runs at once that somebody starts: one by the form, one by a partition key."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.live.days import TASK, Days, new, old
from tests.live.sabotage import pause_before_commit, resume

DAY, OTHER = "2026-01-05", "2026-01-06"


@pytest.mark.by_turns(2, 0)
def test_by_the_form_and_by_key_at_once(days: Days) -> None:
    days.create([DAY, OTHER])
    client = days.server.client

    # The form sends the moment of the click as well.
    form = {"day": DAY, "mode": "static", "dry_run": False}
    client.trigger(days.form, "form", conf=form, logical_date=datetime.now(UTC).isoformat())
    operation_id = pause_before_commit(days)
    # The key counts, not the day of the form.
    client.trigger(days.keyed, "keyed", conf={"day": OTHER}, partition_key=DAY)
    assert client.ended(days.keyed, "keyed") == "success"
    assert days.rows() == [*new(DAY, factor=1000), *old(OTHER)]
    resume(days, operation_id)

    assert client.ended(days.form, "form") == "success"
    assert days.rows() == [*new(DAY), *old(OTHER)], "the later one's rows, and not of both"
    assert "conflict in attempt 1 of 5" in client.log(days.form, "form", TASK, 1)
    assert days.tries(days.form, "form") == 1
    assert days.result(days.keyed, "keyed")["snapshot_id"] == 2
    assert days.result(days.form, "form")["snapshot_id"] == 3
