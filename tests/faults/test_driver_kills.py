"""A driver killed at every single change that it makes to the warehouse, from guard to result.

The steps are those of a clean run of the same work. Before each of them, and in the middle of each
file that is written, a driver gets SIGKILL; then the same operation is tried again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.result import JobResult
from tests.faults.conftest import Drivers
from tests.faults.looking import look
from tests.faults.merges import OLD, Work, run

_TABLE = "shop.orders"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}(-[0-9a-f]{12}-\d+)?|(?<=[-.])[0-9a-f]{32}")


def test_killed_at_every_step(
    drivers: Drivers, fresh: Callable[[], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    work = Work("operation-1", 100)
    steps = drivers.do("steps", fresh(), work)["value"]
    names = [_name(fresh(), *step) for step in steps]
    assert {"consumer", "bucket-0", "manifest", "snapshot", "_operations"} <= {
        part for name in names for part in re.split("[ /]", name)
    }
    table = []
    for number, (name, (event, _)) in enumerate(zip(names, steps, strict=True), 1):
        for torn in (False, True) if event == "open" else (False,):
            died = drivers.do("die", warehouse := fresh(), work, step=number, torn=torn)
            assert died["signal"] == 9, (name, died)
            place = f"{'in the middle of' if torn else 'before'} {name}"
            table.append((place, *_next_try(warehouse, work)))
    outcomes = {each[1:] for each in table}
    assert outcomes == {("old", "applied"), ("new", "found")}
    width = max(len(place) for place, *_ in table)
    with capsys.disabled():
        sys.stdout.write(f"\n{'killed':<{width}}  table  next try\n")
        for place, state, then in table:
            sys.stdout.write(f"{place:<{width}}  {state:<5}  {then}\n")


def _next_try(warehouse: Path, work: Work) -> tuple[str, str]:
    """The table's state after the kill, and what the next try did."""
    left = look(warehouse, _TABLE)
    states = {"old": sorted(OLD, key=repr), "new": work.expected}
    (state,) = (name for name, rows in states.items() if rows == left.rows)
    assert left.guards <= {f"consumer-merge-{work.operation_id}"}

    result = run(warehouse, work, 2)

    assert result.status == "committed", result.error
    after = look(warehouse, _TABLE)
    assert after.rows == work.expected
    assert after.made_by.count(work.operation_id) == 1
    assert len(after.made_by) == 2
    assert after.guards == frozenset()
    assert after.live <= after.on_disk
    stored = (warehouse / "_operations" / f"{work.operation_id}.json").read_text()
    assert JobResult.from_json(stored) == result
    assert (result.base_snapshot_id, result.new_snapshot_id) == (1, 2)
    assert result.try_number in (1, 2)
    # A third try changes nothing any more.
    assert run(warehouse, work, 3).new_snapshot_id == 2
    assert len(look(warehouse, _TABLE).made_by) == 2
    return state, "applied" if result.try_number == 2 else "found"


def _name(warehouse: Path, event: str, path: str) -> str:
    short: Any = Path(path).relative_to(warehouse)
    return f"{event.removeprefix('os.')} {_ID.sub('*', str(short))}"
