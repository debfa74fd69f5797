"""No file of a warehouse, whatever is in it, makes a job do anything but work or say what is wrong.

``make test-fuzz N=2000`` runs more attacks; each is told apart by its seed.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.exercise import exercise
from tests.fuzz.runner import run
from tests.fuzz.warehouse import attack, attacked_copy, build

SECONDS = 15
# However slow the machine is: a seed is the same attack everywhere.
LEAST_ATTACKS = 40
# Of their own kind: each showed a defect once.
KNOWN = (71, 132, 241, 243, 251, 342, 363, 472, 494, 544, 861, 998, 3102, 30346)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("fuzz"))


def test_a_warehouse_without_damage_works(warehouse: Path, tmp_path: Path) -> None:
    assert exercise(Path(shutil.copytree(warehouse, tmp_path / "warehouse"))) == "fine"


@pytest.mark.parametrize("seed", KNOWN)
def test_attacks_that_succeeded_once(warehouse: Path, tmp_path: Path, seed: int) -> None:
    exercise(attacked_copy(warehouse, attack(warehouse, seed), tmp_path))


@pytest.mark.slow
def test_attacks_end_well_or_in_a_typed_error(warehouse: Path) -> None:
    deadline = time.monotonic() + SECONDS
    outcomes: Counter[str] = Counter()
    failures = []
    for report in run(warehouse, 10_000, 20_000):
        outcomes[report.outcome] += 1
        if report.failure:
            failures.append(f"{report.attack}\n{report.failure}")
        if time.monotonic() > deadline and outcomes.total() >= LEAST_ATTACKS:
            break

    print(outcomes)  # noqa: T201 - pytest shows it when the test fails
    assert failures == []
    # What was attacked was noticed, and what can be read still is.
    assert any("METADATA_UNREADABLE" in outcome for outcome in outcomes)
    assert any("DATA_FILE_UNREADABLE" in outcome for outcome in outcomes)
    assert outcomes["fine"] > 5
