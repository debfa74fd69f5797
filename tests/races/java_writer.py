"""A process in which Paimon's Java library appends rows to the table, until it is time.

Its renames replace no file (``LinkingFileIO``), as in HDFS.
"""

from __future__ import annotations

import json
import random
import sys
import time
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.judge.jvm import JudgeError
from tests.judge.writer import JavaTable
from tests.races.journal import journal_of
from tests.races.statements import Statement, random_append
from tests.support.paimon_tables import NAME

_KINDS = {"id": "BIGINT", "v": "BIGINT", "p": "INT"}


def snapshot_of(warehouse: Path, user: str) -> int:
    """The snapshot whose commit user begins with ``user``."""
    folder = warehouse / f"{NAME.database}.db" / NAME.table / "snapshot"
    ids = sorted((int(path.name[9:]) for path in folder.glob("snapshot-*")), reverse=True)
    for each in ids:
        if json.loads((folder / f"snapshot-{each}").read_text())["commitUser"].startswith(user):
            return each
    raise AssertionError(f"{user} has no snapshot")


def run(plan: dict[str, Any]) -> None:
    """Append rows with new keys for ``plan["seconds"]``, with a journal of them."""
    chance, warehouse = random.Random(plan["seed"]), Path(plan["warehouse"])
    table = JavaTable(warehouse, str(NAME), _KINDS)
    until = time.monotonic() + plan["seconds"]
    with journal_of(plan) as note:
        while time.monotonic() < until:
            statement: Statement = random_append(chance, plan["partitions"])
            operation_id = f"op-{uuid.uuid4().hex}"
            note(operation=operation_id, statement=asdict(statement))
            rows = [dict(zip(_KINDS, row, strict=True)) for row in statement.new_rows([])]
            try:
                table.append_rows(rows, user=operation_id)
            except JudgeError as error:
                note(operation=operation_id, failed="JAVA", text=str(error))
            else:
                note(operation=operation_id, done=snapshot_of(warehouse, operation_id))
            time.sleep(chance.uniform(0, 0.1))


if __name__ == "__main__":
    run(json.loads(sys.stdin.read()))
