"""Every fault at every step of a compaction: the table is readable, and the next try finishes.

As in ``tests.faults.matrix``: the driver is killed, or its storage fails once. Nothing that it
leaves behind is in the way, and the orphan search finds it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.compactions import OPERATION, Compaction, rows_of
from tests.faults.drivers import Drivers
from tests.faults.matrix import Fault, faults_of

WORKS = {
    "compaction": Compaction(),
    "compaction with vectors beside others": Compaction(marks=True, meets_others=True),
    "compaction of sections": Compaction(has_key=True),
    "compaction of sections beside others": Compaction(has_key=True, meets_others=True),
}
_COUNTED = (
    *("files_before", "files_after", "rows", "partitions_compacted", "vectors_removed"),
    *("manifests_before", "manifests_after", "deletes_removed"),
)


@dataclass
class CompactionMatrix:
    """Runs faults below ``folder``; ``read`` has another engine look at the rows."""

    drivers: Drivers
    folder: Path
    read: Callable[[Path], list[dict[str, Any]]] | None = None
    works: Mapping[str, Compaction] = field(default_factory=lambda: WORKS)

    def faults(self, work: str) -> Iterator[Fault]:
        """All faults of a work."""
        steps = self._do("compaction steps", work, self._fresh(work))
        yield from faults_of(work, steps["value"], self._warehouse)

    def run(self, fault: Fault) -> tuple[str, str]:
        """How many of the snapshots the fault left made, and what it left for the search.

        Raises:
            AssertionError: rows are lost, doubled or wrong, or the next try does not finish.
        """
        work, warehouse = self.works[fault.work], self._fresh(fault.work)
        if fault.kills:
            how = {"torn": fault.kind == "killed within", "acts": fault.kind == "killed after"}
            died = self._do("die compacting", fault.work, warehouse, step=fault.step, how=how)
            assert died["signal"] == 9, (str(fault), died)
        else:
            acts = fault.kind == "answer lost after"
            self._do("fail compacting", fault.work, warehouse, step=fault.step, acts=acts)
        left = work.look(warehouse)
        others = left.rows != rows_of(work, others=False)
        expected = rows_of(work, others=others)
        assert left.rows == expected, fault
        status, error, report = self._do("try compacting", fault.work, warehouse)["value"]
        assert status == "committed", (fault, error)
        self._require_done(fault, warehouse, expected, report)
        found, lost = self._do("find orphans", fault.work, warehouse)["value"]
        assert not lost, (fault, lost)
        assert work.look(warehouse).rows == expected, fault
        done = left.made_by.count(OPERATION)
        return f"{done} of {work.snapshots}", f"{found} orphans"

    def _require_done(
        self, fault: Fault, warehouse: Path, expected: list[dict[str, Any]], report: dict[str, Any]
    ) -> None:
        work = self.works[fault.work]
        after = work.look(warehouse)
        assert after.rows == expected, fault
        assert after.made_by.count(OPERATION) == work.snapshots, (fault, after.made_by)
        assert not [guard for guard in after.guards if OPERATION in guard], fault
        assert after.live <= after.on_disk, fault
        if not work.meets_others:
            assert len(after.live) == work.files_left, fault
            clean = self._clean(fault.work)
            assert {n: report[n] for n in _COUNTED} == {n: clean[n] for n in _COUNTED}, fault
        if self.read is not None:
            assert sorted(self.read(warehouse), key=repr) == expected, fault

    def _clean(self, work: str) -> dict[str, Any]:
        """The report of a run without faults."""
        path = self.folder / "clean"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self._seed(work), path)
        _, _, report = self._do("try compacting", work, path)["value"]
        return dict(report)

    def _do(self, what: str, work: str, warehouse: Path, **more: Any) -> Any:
        return self.drivers.do(what, warehouse, compaction=asdict(self.works[work]), **more)

    @property
    def _warehouse(self) -> Path:
        return self.folder / "warehouse"

    def _seed(self, work: str) -> Path:
        seed = self.folder / f"seed {work}"
        if not seed.exists():
            seed.mkdir()
            self.works[work].new_table(seed)
        return seed

    def _fresh(self, work: str) -> Path:
        """A new copy of the work's table, always at one and the same path."""
        shutil.rmtree(self._warehouse, ignore_errors=True)
        shutil.copytree(self._seed(work), self._warehouse)
        return self._warehouse
