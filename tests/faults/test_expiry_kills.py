"""An expiry is killed before each of its steps: what is there still reads; then it goes on.

A run takes half of the steps, the other half with ``MERGE_TESTS_TURN=1``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from tests.connectors.paimon.histories import History, new_history
from tests.faults.drivers import Drivers
from tests.support.reachable import needed, stored
from tests.support.turns import has_turn

pytestmark = pytest.mark.slow

# A history with deletion vectors: data files, index files and manifests go, a branch keeps some.
_SEED = 78


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """A table with something to expire and something that keeps files."""
    made = new_history(tmp_path_factory.mktemp("seed"), _SEED, commits=8)
    made.branch()
    made.append("main")
    made.remember("main")
    shutil.rmtree(made.table / "consumer", ignore_errors=True)
    made.consumers.clear()
    return made


@pytest.fixture
def copies(history: History, tmp_path: Path) -> Iterator[History]:
    """New copies of the table, all at one and the same path."""

    def made() -> Iterator[History]:
        warehouse = tmp_path / "warehouse"
        while True:
            shutil.rmtree(warehouse, ignore_errors=True)
            shutil.copytree(history.warehouse, warehouse)
            connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
            yield replace(history, warehouse=warehouse, connector=connector)

    return made()


def test_killed_before_each_step(drivers: Drivers, copies: Iterator[History]) -> None:
    clean = next(copies)
    steps = drivers.do("expiry steps", clean.warehouse)["value"]
    end = files(clean)
    assert stored(clean.table) == needed(clean.table)
    assert sum(event == "os.remove" for event, _ in steps) > 20

    chosen = [step for step in enumerate(steps, 1) if has_turn(step[0], 2)]
    for number, (event, path) in chosen:
        for torn in (False, True) if event == "open" else (False,):
            copy = next(copies)
            died = drivers.do("die expiring", copy.warehouse, step=number, how={"torn": torn})
            assert died["signal"] == 9, (event, path)
            require_readable(copy)
            assert drivers.do("expire", copy.warehouse)["value"] is None
            assert files(copy) - end == leftovers(copy), (event, path)
            assert end <= files(copy)
    require_readable(copy)


def test_storage_that_fails_is_told(drivers: Drivers, copies: Iterator[History]) -> None:
    clean = next(copies)
    steps = drivers.do("expiry steps", clean.warehouse)["value"]
    end = files(clean)
    removals = [
        number
        for number, (event, path) in enumerate(steps, 1)
        # The probe of the store's clock may stay.
        if event == "os.remove" and not path.endswith(".clock")
    ]

    for number in (removals[0], removals[len(removals) // 2], removals[-2]):
        copy = next(copies)
        failed = drivers.do("fail expiring", copy.warehouse, step=number, acts=False)
        assert failed["value"] == "STORAGE_UNAVAILABLE"
        require_readable(copy)
        assert drivers.do("expire", copy.warehouse)["value"] is None
        assert files(copy) == end


def files(history: History) -> set[str]:
    """All files of the table, by their places."""
    return {str(p.relative_to(history.table)) for p in history.table.rglob("*") if p.is_file()}


def leftovers(history: History) -> set[str]:
    """Half written notes and hints, and probes of the clock, which nobody takes for anything."""
    return {path for path in files(history) if path.endswith((".tmp", ".clock"))}


def require_readable(history: History) -> None:
    """Every snapshot and tag that is there has its rows."""
    for view, rows in history.rows.items():
        line, at = view
        folder = history.table if line == "main" else history.table / f"branch/branch-{line}"
        name = f"snapshot/snapshot-{at}" if isinstance(at, int) else f"tag/tag-{at}"
        if (folder / name).exists():
            assert history.read(view) == rows, view
