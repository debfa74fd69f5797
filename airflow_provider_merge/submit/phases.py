"""The phases of a task's work as they begin: what a time-out names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from airflow_provider_merge.submit.output_lines import OutputLine
from spark_jobs.contract.job_lines import begun_phase

PREPARE: Final = "prepare"
START: Final = "start"
CLUSTER: Final = "cluster"
IMPORTS: Final = "imports"
END: Final = "end"
# What is waited for meanwhile. The phases of jobs are those of docs/start-up.md.
_WAITS_FOR: Final = {
    PREPARE: "the catalog and the metadata of tables",
    START: "Spark to start: its launcher, Java, and the session with the cluster's resources",
    CLUSTER: "the application on the cluster",
    IMPORTS: "Python to import the job",
    "catalog": "the catalog to open the table",
    "history": "the workspace and the table's snapshots, in search of an earlier commit",
    "analyze": "Spark to analyze the statement",
    "plan": "the list of the table's files",
    "source": "Spark to read the sources",
    "prune": "Spark to find the files that the statement needs",
    "write": "Spark's tasks that write rows",
    "compact": "Spark's tasks that write fewer files",
    "commit": "the storage or the catalog to publish the snapshot",
    "create": "the storage or the catalog to create the table",
    "clean": "temporary files to be removed",
    END: "the job's end, and its result",
}


class Phases:
    """The phases that have begun so far, and when."""

    def __init__(self) -> None:
        self._began: list[tuple[str, float]] = []

    def enter(self, name: str) -> None:
        """The phase begins, and the one before it ends."""
        self._began.append((name, time.monotonic()))

    def text(self) -> str:
        """The phase now, what it waits for, its seconds, and those of the phases before it."""
        ends = [began for _, began in self._began[1:]] + [time.monotonic()]
        seconds = [
            (name, end - began) for (name, began), end in zip(self._began, ends, strict=True)
        ]
        name, now = seconds.pop()
        before: dict[str, float] = {}
        for each, value in seconds:
            before[each] = before.get(each, 0.0) + value
        text = f"in phase {name}, for {now:.1f} seconds"
        if name in _WAITS_FOR:
            text += f", waiting for {_WAITS_FOR[name]}"
        if before:
            earlier = " | ".join(f"{each} {value:.1f}" for each, value in before.items())
            text += f"; seconds before: {earlier}"
        return text


def without_phases(
    lines: Iterable[OutputLine], enter: Callable[[str], None]
) -> Iterator[OutputLine]:
    """The lines of a job's output but those that tell phases, of which ``enter`` hears."""
    for line in lines:
        phase = begun_phase(line.text) if line.is_own else None
        if phase is None:
            yield line
        else:
            enter(phase)
