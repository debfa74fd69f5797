"""A behaviour of the conformance suite as a job on the cluster, and what must hold afterwards."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spark_jobs.contract.request import Source
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.text_limits import TextLimits
from tests.cluster.processes import kill_tree
from tests.cluster.standalone import Cluster, Submission
from tests.conformance.behaviour import Behaviour
from tests.conformance.check import (
    OPERATION_ID,
    check_files,
    check_metrics,
    readable,
    request_of,
    staying,
)
from tests.conformance.harness import Harness, TableState
from tests.conformance.tables import SeedTable


@dataclass
class ClusterMerge:
    """One merge: its table before, its submission, its process."""

    behaviour: Behaviour
    harness: Harness
    before: TableState
    submission: Submission
    process: subprocess.Popen[bytes]

    def result(self) -> JobResult:
        """Wait for the end; the result that lies under the warehouse."""
        code = self.process.wait(timeout=600)
        assert code == 0, self.submission.log.read_text()[-5000:]
        path = self.harness.warehouse / "_operations" / f"{OPERATION_ID}.json"
        return JobResult.from_json(path.read_text())

    def check(self, *, leftovers: bool = False) -> TableState:
        """Rows, files and metrics are as the behaviour says.

        ``leftovers``: a killed attempt may have left data files; none of them is in the snapshot.
        """
        result = self.result()
        after = self.harness.state()
        assert readable(after.rows) == readable(self.behaviour.expected_rows)
        assert result.new_snapshot_id == after.snapshot_id == (self.before.snapshot_id or 0) + 1
        stay = staying(self.behaviour, self.harness, self.before, after)
        check_metrics(self.behaviour, result, self.before, after, stay)
        if not leftovers:
            check_files(self.behaviour, self.before, after, stay)
        assert after.operations == {f"{OPERATION_ID}.json"}
        assert not list(self.harness.warehouse.rglob("consumer-*"))
        return after


@dataclass
class ClusterMerges:
    """Starts merges on a cluster."""

    cluster: Cluster
    harness: Callable[[SeedTable, bool], Harness]
    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(
        self,
        behaviour: Behaviour,
        *,
        partitioned: bool = True,
        source: Source | None = None,
        **submission: Any,
    ) -> ClusterMerge:
        harness = self.harness(behaviour.table, partitioned)
        # Some sources call Java, to leave traces.
        limits = TextLimits(allow_code=True)
        request = replace(request_of(behaviour, harness), text_limits=limits)
        if source is not None:
            request = replace(request, sources=(source,))
        job = Submission(self.folder, request, self.cluster.master, **submission)
        before = harness.state()
        self.processes.append(job.start())
        return ClusterMerge(behaviour, harness, before, job, self.processes[-1])

    def stop(self) -> None:
        """End what a test left running: it would keep the cluster's cores."""
        for process in self.processes:
            if process.poll() is None:
                kill_tree(process)
