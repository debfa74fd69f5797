"""Random logs of changes, cut into random batches: the table is that of a replay event by event."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.conformance.harness import Harness
from tests.engine.cdc_logs import run

pytestmark = pytest.mark.slow

KINDS = (
    "append-cow",
    "append-dv",
    "primary-key",
    "row-tracking",
    "iceberg-cow",
    "iceberg-mor",
    "primary-key-dv",
)
# Logs in one table, whose batches are merged together.
_LOGS = int(os.environ.get("CDC_LOGS", "12"))


@pytest.mark.by_turns(112)
@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("kind", KINDS)
def test_any_batching_is_the_replay(
    make_table: Callable[..., Harness], kind: str, seed: int
) -> None:
    assert run(make_table, kind, seed, _LOGS) == _LOGS
