"""Writes beside a stream of upserts; ``python -m tests.races.iceberg_stream`` runs for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.races.iceberg_stream import race
from tests.support.optional_packages import require_package

pytestmark = pytest.mark.slow


def test_writes_beside_a_stream_that_deletes_by_value(tmp_path: Path) -> None:
    require_package("sqlalchemy")

    upserts, written, conflicts = race(tmp_path, 0.1, 0.2, 1.0)

    assert upserts > 2
    assert written > 1
    assert conflicts == 0
