"""Whole logs of all tasks that have succeeded so far in this run: nothing in them alarms.

It runs last, on what the other tests have made: operators on tables of both formats, and sensors.
"""

from __future__ import annotations

import json
import re

import pytest

# What remains, and why. Each is matched from the start of the line's text.
KNOWN = {
    r"Spark-Submit cmd: .*spark\.log\.level=WARN": "the setting with which Spark is quiet",
    r"\S+ could not be polled: STORAGE_UNAVAILABLE: ": "a store that the tests stopped",
    r"\S+ \S+ WARNING airflow_provider_merge\.job: conflict in \w+ \d of ": "writers at once",
    r"Operation \S+ of this task was ended, but had committed snapshot ": "tasks that were marked",
    r"The job committed snapshot \d+ of \S+ and ended before it": "killed drivers",
    r"The job was done, then its process failed: The driver was killed": "killed drivers",
}
_ALARMS = re.compile(r"Traceback|Exception|ERROR|WARN|BrokenPipe|XCom not found|Phase begins")
_LEVELS = {"warning", "error", "critical"}


def test_nothing_alarms(server):
    known = re.compile("|".join(KNOWN))
    read, alarming = set(), []
    for path in sorted((server.folder / "home" / "logs").rglob("attempt=*.log*")):
        events = [json.loads(line) for line in path.read_text().splitlines() if line]
        if not _is_of_a_success(events):
            continue
        read.add(path)
        alarming += [
            f"{path.relative_to(server.folder)}: {event}"
            for event in events
            if _alarms(event) and not known.match(event.get("event", ""))
        ]
    if not read:
        pytest.skip("no task has succeeded in this run: run the whole folder")
    assert not alarming, "\n".join(alarming[:40])


def _is_of_a_success(events):
    """Whether a task pushed its result, or a trigger ended; a failed one has an exception."""
    if any(event.get("error_detail") for event in events):
        return False
    last = events[-1].get("event", "") if events else ""
    return last in ("::endgroup::", "trigger completed")


def _alarms(event):
    return event.get("level") in _LEVELS or bool(_ALARMS.search(event.get("event", "")))
