"""The traps of docs/sources.md, in local files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.harness import TARGET, Harness
from tests.engine.landed import TABLE
from tests.support.source_reading import check_trap
from tests.support.source_traps import TRAPS, Trap


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.id)
def test_trap(trap: Trap, make_table: Callable[..., Harness], tmp_path: Path) -> None:
    harness = make_table("folder", TABLE, partitioned=False)
    folder = tmp_path / "landing"
    folder.mkdir()
    for name, content in trap.files.items():
        (folder / name).write_bytes(content)

    check_trap(harness.spark, harness.open(), TARGET, trap, str(folder))
