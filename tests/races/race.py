"""A race: several writer processes on one table for some time, then the checker."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.contract.request import CatalogSpec
from tests.races.checker import Report, check
from tests.races.disturber import COLUMNS
from tests.races.statements import KEYS, PARTITIONS, as_rows
from tests.races.writer import opened
from tests.support.faketime import clock
from tests.support.keyed_changes import keyed_batches, new_row
from tests.support.paimon_tables import NAME, append, create, merge

_ROOT = Path(__file__).resolve().parents[2]
_GRACE_SECONDS = 600
_CLOCKS = (1, -1, 0)
_DYNAMIC_BUCKETS = {"bucket": "-1", "dynamic-bucket.target-row-num": "15"}


@dataclass(frozen=True)
class Race:
    """What runs where; ``folder`` takes the journals.

    ``marks``: a table with deletion vectors; ``has_key``: with a primary key and one bucket in each
    partition, or ``dynamic`` ones of few keys. ``partitions``: how many the statements change.
    ``compacts``: a compactor beside the writers; ``java``: one more writer, which is Java's.
    ``days``: clocks of writers are right, or so many days ahead or behind, and so are those of two
    more processes that take care of the table. ``disturbed``: one more rolls the table back, and
    drops it and makes it anew.
    """

    catalog: CatalogSpec
    folder: Path
    credentials: Mapping[str, str] = field(default_factory=dict)
    writers: int = 4
    marks: bool = False
    has_key: bool = False
    dynamic: bool = False
    partitions: int = PARTITIONS
    publish: str = "own"
    seed: int = 0
    compacts: bool = False
    java: bool = False
    days: float = 0
    disturbed: bool = False

    def run(self, seconds: float) -> Report:
        """Let the writers race, then check what they left.

        Raises:
            RuntimeError: a writer broke off.
        """
        connector = opened(self.catalog, dict(self.credentials), "own")
        options, key = self._definition()
        table = create(connector, COLUMNS, ["p"], options, primary_key=key)
        rows = [{"id": i, "v": i, "p": p} for i in range(0, KEYS, 2) for p in range(PARTITIONS)]
        if key:
            merge(
                connector,
                table,
                *keyed_batches(table, list(map(new_row, rows))),
                operation_id="first",
            )
        else:
            append(connector, rows, "first")
        connector.writes.release_guard(connector.metadata.load_table(NAME), "first")
        programs = ["writer"] * self.writers + ["compactor"] * self.compacts
        programs += ["java_writer"] * self.java
        programs += ["disturber"] * self.disturbed
        has_care = connector.maintenance is not None
        programs += ["caretaker"] * (len(_CLOCKS) - 1 if self.days and has_care else 0)
        started = {
            self.folder / f"{program}-{number}.jsonl": program
            for number, program in enumerate(programs)
        }
        processes = [
            self._started(*each, seconds, number) for number, each in enumerate(started.items())
        ]
        codes = [process.wait(seconds + _GRACE_SECONDS) for process in processes]
        if any(codes):
            raise RuntimeError(f"writers ended with {codes}")
        return check(connector, started, as_rows(rows))

    def _definition(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """The table's options and its key."""
        options = {"deletion-vectors.enabled": "true"} if self.marks else {}
        if self.has_key:
            options |= _DYNAMIC_BUCKETS if self.dynamic else {"bucket": "1"}
        if self.java:
            options["write-only"] = "true"
        return options, ("p", "id") if self.has_key else ()

    def _started(
        self, journal: Path, program: str, seconds: float, number: int
    ) -> subprocess.Popen[str]:
        options, key = self._definition()
        plan = {
            "table": {"options": options, "key": key},
            "warehouse": self.catalog.warehouse,
            "options": dict(self.catalog.options),
            "credentials": dict(self.credentials),
            "publish": self.publish,
            "partitions": self.partitions,
            "journal": str(journal),
            "seconds": seconds,
            "seed": f"{self.seed} {journal.name} {random.Random(self.seed).random()}",
        }
        command = [sys.executable, "-W", "ignore", "-m", f"tests.races.{program}"]
        days = 0 if program == "java_writer" else self.days * _CLOCKS[number % len(_CLOCKS)]
        variables = {**os.environ, **clock(days)}
        process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, text=True, env=variables
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(plan))
        process.stdin.close()
        return process
