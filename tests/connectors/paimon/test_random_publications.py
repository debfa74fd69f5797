"""Random histories of a branch: its table gets exactly its rows, and both go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.contract.maintenance import (
    CreateBranchSpec,
    DeleteBranchSpec,
    ExpireSnapshotsSpec,
    FastForwardSpec,
)
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.branches import Publishing
from tests.connectors.paimon.histories import new_history
from tests.support.paimon_tables import NAME
from tests.support.turns import EVERYTHING

SEEDS = range(60 if EVERYTHING else 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_published_branch(tmp_path: Path, seed: int) -> None:
    history = new_history(tmp_path, 1000 + seed, commits=3)
    branches, care = history.connector.branches, history.connector.maintenance
    assert branches is not None
    assert care is not None
    if not history.snapshots():
        return
    branches.create_branch(NAME, CreateBranchSpec("new"))
    history.remember("new")
    for number in range(2):
        for _ in range(history.random.randint(1, 4)):
            changes = [history.append, history.merge, history.overwrite]
            history.random.choice(changes[:1] if history.evolved else changes)("new")
            history.remember("new")
        publishing = Publishing({OPERATION_ID: f"publish-{number}"})
        try:
            report = branches.fast_forward(NAME, FastForwardSpec("new"), publishing, dry_run=False)
        except NotSupportedError as error:
            assert "data evolution" in error.message  # noqa: PT017 - one kind is refused
            return
        assert report.snapshot_id is not None
        history.remember("main")
        head = history.snapshots("new")[-1]
        assert history.rows["main", report.snapshot_id] == history.rows["new", head]
    for view, rows in history.rows.items():
        assert history.read(view) == rows, view

    # Both go on, and old snapshots expire.
    for line in ("main", "new"):
        history.append(line)
        history.remember(line)
    for guard in history.table.rglob("consumer/consumer-*"):
        guard.unlink()
    expire = ExpireSnapshotsSpec(retain_max=1, retain_min=1, older_than="0 s")
    care.expire_snapshots(NAME, expire, dry_run=False)
    for line in ("main", "new"):
        view = (line, history.snapshots(line)[-1])
        assert history.read(view) == history.rows[view]
    branches.delete_branch(NAME, DeleteBranchSpec("new"), dry_run=False)
    care.expire_snapshots(NAME, expire, dry_run=False)
    view = ("main", history.snapshots()[-1])
    assert history.read(view) == history.rows[view]
