"""Maintenance of random tables, compared with what the table's files say and with its rows before.

``python -m tests.connectors.paimon.random_maintenance N [SEED]`` maintains N random tables.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.contract.maintenance import (
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    MaintenanceReport,
    RemoveOrphanFilesSpec,
)
from spark_jobs.spi.maintenance import ConnectorMaintenance
from tests.connectors.paimon.histories import History, new_history
from tests.support.paimon_tables import NAME
from tests.support.reachable import needed, stored
from tests.support.spark_session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DAY = 86_400


def maintain(warehouse: Path, seed: int, spark: SparkSession | None = None) -> History:
    """A random history, expired twice, its tags deleted, its orphans removed.

    With ``spark`` orphans are found by both ways.

    Raises:
        AssertionError: rows are lost or changed, or a file is missing or left.
    """
    history = new_history(warehouse, seed)
    chosen = random.Random(f"care {seed}")
    assert stored(history.table) == needed(history.table), "a history leaves nothing behind"
    expire(history, chosen)
    for tag in chosen.sample(history.tags, chosen.randint(0, len(history.tags))):
        before = stored(history.table)
        preview = maintenance(history).delete_tag(NAME, DeleteTagSpec(tag), dry_run=True)
        assert stored(history.table) == before
        assert maintenance(history).delete_tag(NAME, DeleteTagSpec(tag), dry_run=False) == preview
        assert _removed(preview) == len(before) - len(stored(history.table))
        history.forget(("main", tag))
        require_whole(history)
    history.step()
    expire(history, chosen)
    remove_orphans(history, chosen, spark)
    return history


def maintenance(history: History) -> ConnectorMaintenance:
    """The connector's."""
    assert history.connector.maintenance is not None
    return history.connector.maintenance


def expire(history: History, chosen: random.Random) -> None:
    """Expire with random limits, after a dry run with the same."""
    times = _times(history)
    spec = _limits(chosen, times)
    expected = _expected(spec, times, min(history.consumers.values(), default=1 << 60))
    before = stored(history.table)
    preview = maintenance(history).expire_snapshots(NAME, spec, dry_run=True)
    assert stored(history.table) == before
    report = maintenance(history).expire_snapshots(NAME, spec, dry_run=False)
    assert report == preview
    assert _removed(report) == len(before) - len(stored(history.table))
    assert report.snapshots == len(expected)
    history.forget(*(("main", each) for each in expected))
    require_whole(history)


def require_whole(history: History) -> None:
    """Every view that is left reads as before, and exactly the files that it takes are there."""
    for view, rows in history.rows.items():
        assert history.read(view) == rows, view
    assert set(_times(history)) == set(history.snapshots())
    assert stored(history.table) == needed(history.table)
    assert not list(history.table.glob("removal/*"))


def remove_orphans(
    history: History, chosen: random.Random, spark: SparkSession | None = None
) -> None:
    """Old files that nobody knows go, young ones stay, and so does all that is known."""
    known = [path for path in history.table.rglob("bucket-*/*") if path.is_file()]
    known += (history.table / "manifest").iterdir()
    old = time.time() - 3 * _DAY
    for path in known:
        os.utime(path, (old, old))
    folders = sorted({path.parent for path in known})
    gone, young = (
        [chosen.choice(folders) / f"{name}-{i}" for i in range(chosen.randint(0, 2))]
        for name in ("data-gone", "data-young")
    )
    for path in (*gone, *young):
        path.write_text("x")
    for path in gone:
        os.utime(path, (old, old))
    spec = RemoveOrphanFilesSpec()
    first, second = chosen.sample([None, spark], 2)
    preview = maintenance(history).remove_orphan_files(NAME, spec, dry_run=True, spark=first)
    assert all(path.exists() for path in gone)
    report = maintenance(history).remove_orphan_files(NAME, spec, dry_run=False, spark=second)
    assert report == preview
    assert sorted(report.files) == sorted(str(p.relative_to(history.table)) for p in gone)
    assert all(path.exists() for path in young)
    for path in young:
        path.unlink()
    require_whole(history)


def _removed(report: MaintenanceReport) -> int:
    return report.data_files + report.index_files + report.manifests


def _times(history: History) -> dict[int, int]:
    """The time of each of main's snapshots, from their files."""
    manager = history.handle().native.table.snapshot_manager()
    paths = history.table.glob("snapshot/snapshot-*")
    ids = sorted(int(path.name.removeprefix("snapshot-")) for path in paths)
    return {each: manager.get_snapshot_by_id(each).time_millis for each in ids}


def _limits(chosen: random.Random, times: dict[int, int]) -> ExpireSnapshotsSpec:
    moment = datetime.fromtimestamp(chosen.choice(list(times.values())) / 1000, UTC)
    retain_min = chosen.choice([1, 1, 2, 5])
    return ExpireSnapshotsSpec(
        retain_max=chosen.choice([None, None, retain_min, retain_min + 3]),
        retain_min=retain_min,
        older_than=chosen.choice(["0 s", "0 s", moment.isoformat(), None]),
        max_deletes=chosen.choice([None, None, 1, 3]),
    )


def _expected(spec: ExpireSnapshotsSpec, times: dict[int, int], consumed: int) -> list[int]:
    """The ids that expire: from the oldest on, as long as each may."""
    ids, latest = sorted(times), max(times)
    if spec.older_than == "0 s":
        limit = time.time() * 1000
    elif spec.older_than is None:
        limit = (time.time() - 3600) * 1000
    else:
        limit = datetime.fromisoformat(spec.older_than).timestamp() * 1000
    expired = []
    for each, successor in pairwise(ids):
        superfluous = spec.retain_max is not None and latest - each >= spec.retain_max
        may = (
            latest - each >= (spec.retain_min or 10)
            and each < consumed
            and each < ids[0] + (spec.max_deletes or len(times))
            and (superfluous or times[successor] < limit)
        )
        if not may:
            break
        expired.append(each)
    return expired


def main(arguments: list[str]) -> Any:
    """Maintain some random tables."""
    count, first = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    with tempfile.TemporaryDirectory() as folder, local_session(Path(folder)) as spark:
        for seed in range(first, first + count):
            with tempfile.TemporaryDirectory() as name:
                try:
                    maintain(Path(name), seed, spark)
                except BaseException:
                    sys.stdout.write(f"seed {seed} fails\n")
                    raise
    sys.stdout.write(f"{count} random tables were maintained\n")


if __name__ == "__main__":
    main(sys.argv[1:])
