"""A process that takes care of an Iceberg table beside its writers, until it is time.

``by`` says how: a ``compactor`` and an ``expiry`` of this project, or ``java``: Spark with Iceberg,
which makes and drops tags and branches and rolls the table back. What it did goes to a journal.

It takes part in races as ``tests.races.racer`` says.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec
from spark_jobs.errors import JobError
from tests.judge.iceberg_spark import CATALOG, IcebergSpark, IcebergSparkError
from tests.races.iceberg_table import RaceCatalog
from tests.races.journal import journal_of
from tests.races.racer import take_part
from tests.support.compaction_runs import compact, in_groups_of
from tests.support.faketime import mend_sleep
from tests.support.paimon_tables import NAME

_TABLE = f"{CATALOG}.{NAME}"
_WARM = f"{CATALOG}.{NAME.database}.warm"
_FULL = CompactSpec(mode="full", min_files=2)
_EXPIRED = ExpireSnapshotsSpec(retain_min=2, older_than="5 s")
_PAUSE = (0.0, 0.5)
# The most tags and branches that are there at a time, and how far it rolls back.
_NAMES = 8
_MOST_BACK = 4

Note = Callable[..., None]


class Compactor:
    """Compactions whose tasks run in this process."""

    def __init__(self, plan: dict[str, Any]) -> None:
        catalog = RaceCatalog.of(plan)
        self._connector = catalog.connector(plan["workspace"])
        self._spec = catalog.spec(plan["workspace"])

    def act(self, chance: random.Random, note: Note) -> None:
        """Compact all partitions, in one group or in several."""
        grouped = in_groups_of(self._connector, chance.choice((1, 100)))
        operation_id = f"compaction-{uuid.uuid4().hex}"
        result = compact(grouped, self._spec, _FULL, operation_id=operation_id)
        note(compaction=result.error.code if result.error else result.status)
        if result.error is not None:
            # No later try looks for what it did; its note would keep snapshots.
            table = self._connector.metadata.load_table(NAME)
            assert self._connector.compaction is not None
            self._connector.compaction.end(table, operation_id)


class Expiry:
    """Expires snapshots after seconds."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._care = RaceCatalog.of(plan).connector(plan["workspace"]).maintenance
        assert self._care is not None

    def act(self, chance: random.Random, note: Note) -> None:
        """Expire once."""
        del chance
        try:
            report = self._care.expire_snapshots(NAME, _EXPIRED, dry_run=False)
        except JobError as error:
            note(expiry=error.code.name, text=str(error))
        else:
            note(expiry="done", snapshots=report.snapshots)


class Java:
    """Spark with Iceberg; what it wants to drop is noted before."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._spark = IcebergSpark(Path(plan["folder"]), RaceCatalog.of(plan).java)
        # The first statements of a JVM take many times as long as others.
        self._spark.sql(
            f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAME.database}",
            f"CREATE TABLE {_WARM} USING iceberg AS SELECT 1 AS id",
            f"SELECT snapshot_id FROM {_WARM}.snapshots",
            f"ALTER TABLE {_WARM} CREATE TAG x",
            f"ALTER TABLE {_WARM} DROP TAG x",
        )

    def act(self, chance: random.Random, note: Note) -> None:
        """Any of its statements; none has to succeed."""
        kinds = ("create", "create", "create", "drop", "drop", "roll back")
        kind = chance.choice(kinds)
        with suppress(IcebergSparkError):
            if kind == "create":
                self._create(chance, note)
            elif kind == "drop":
                self._drop(chance, note)
            else:
                self._roll_back(chance, note)

    def _create(self, chance: random.Random, note: Note) -> None:
        found = self._spark.sql(f"SELECT snapshot_id FROM {_TABLE}.snapshots")
        if len(self._names()) < _NAMES:
            kind, name = chance.choice(("TAG", "BRANCH")), f"x{uuid.uuid4().hex}"
            of = chance.choice(found)["snapshot_id"]
            self._spark.sql(f"ALTER TABLE {_TABLE} CREATE {kind} {name} AS OF VERSION {of}")
            note(made=name, of=of)

    def _drop(self, chance: random.Random, note: Note) -> None:
        names = self._names()
        if names:
            name = chance.choice(sorted(names))
            note(drops=name)
            self._spark.sql(f"ALTER TABLE {_TABLE} DROP {names[name]} {name}")

    def _roll_back(self, chance: random.Random, note: Note) -> None:
        line = self._spark.sql(
            f"SELECT snapshot_id FROM {_TABLE}.history WHERE is_current_ancestor "
            "ORDER BY made_current_at DESC"
        )
        target = line[min(chance.randint(1, _MOST_BACK), len(line) - 1)]["snapshot_id"]
        self._spark.sql(f"CALL {CATALOG}.system.rollback_to_snapshot('{NAME}', {target})")
        note(rolled_back=target)

    def _names(self) -> dict[str, str]:
        found = self._spark.sql(f"SELECT name, type FROM {_TABLE}.refs WHERE name <> 'main'")
        return {row["name"]: row["type"] for row in found}

    def end(self, note: Note) -> None:
        """Read each tag and branch."""
        for name in self._names():
            query = f"SELECT count(*) AS n FROM {_TABLE} VERSION AS OF '{name}'"
            try:
                note(read=name, rows=self._spark.sql(query)[0]["n"])
            except IcebergSparkError as error:
                note(read=name, failed=str(error)[:500])

    def close(self) -> None:
        """End the JVM."""
        self._spark.close()


_KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "compactor": Compactor,
    "expiry": Expiry,
    "java": Java,
}


def race(caretaker: Any, plan: dict[str, Any]) -> None:
    """Care for ``plan["seconds"]``, with a journal of it."""
    chance, until = random.Random(plan["seed"]), time.monotonic() + plan["seconds"]
    with journal_of(plan) as note:
        while time.monotonic() < until:
            caretaker.act(chance, note)
            time.sleep(chance.uniform(*_PAUSE))
        with suppress(AttributeError):
            caretaker.end(note)


@contextmanager
def opened(plan: dict[str, Any]) -> Iterator[Callable[[dict[str, Any]], None]]:
    """The races of the caretaker ``plan["by"]``."""
    caretaker = _KINDS[plan["by"]](plan)
    yield partial(race, caretaker)
    with suppress(AttributeError):
        caretaker.close()


if __name__ == "__main__":
    mend_sleep()
    take_part(opened)
