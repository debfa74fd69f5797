"""A process that runs random statements on the table, as fast as it can, until it is time.

It has neither Spark nor an engine: it reads the partition's rows with pyarrow, makes the change
rows itself and goes through ``begin_merge``, sink and ``finish_merge`` as a job does. What it is
about to do, and what came of it, goes to a journal.
"""

from __future__ import annotations

import json
import random
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pypaimon.snapshot.renaming_snapshot_commit import RenamingSnapshotCommit

from spark_jobs.connectors.paimon.commit.merge_writes import PaimonMergeWrites
from spark_jobs.connectors.paimon.commit.new_snapshot import NewSnapshot
from spark_jobs.connectors.paimon.commit.publish import SnapshotFiles, SnapshotStore
from spark_jobs.connectors.paimon.format.vectors import read_vector
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import PlannedFile, TableHandle
from spark_jobs.spi.writes import MergeWrite, Operation
from tests.races.journal import journal_of
from tests.races.statements import Statement, random_statement
from tests.support.faketime import mend_sleep
from tests.support.keyed_changes import KeyedChange, keyed_batches, keyed_rows, new_row
from tests.support.paimon_tables import NAME, change_rows, inserts, store

_ATTEMPTS = 8
_TARGET_SIZE = 1 << 27
# Longer than anything that keeps a writer from meeting another one in time.
_LATENCY = 0.3


class CheckThenWrite:
    """A model of every publish that is not atomic: it looks, pauses, then writes."""

    def create(self, path: str, text: str) -> bool:
        if Path(path).exists():
            return False
        time.sleep(_LATENCY)
        self._write(path, text)
        return True

    def write_hint(self, path: str, text: str) -> None:
        self._write(path, text)

    @staticmethod
    def _write(path: str, text: str) -> None:
        temporary = Path(f"{path}.{uuid.uuid4()}")
        temporary.parent.mkdir(exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)


class PypaimonPublish:
    """pypaimon's own: it looks, then renames over what came meanwhile."""

    def publish(self, latest: PinnedTable, new: NewSnapshot) -> bool:
        commit = RenamingSnapshotCommit(latest.table.snapshot_manager())
        return bool(commit.commit(None, new.snapshot, []))


# By the name that PUBLISH=… has, beside "own".
UNSAFE: Mapping[str, Callable[[], SnapshotStore]] = {
    "pypaimon": PypaimonPublish,
    "check-then-write": lambda: SnapshotFiles(CheckThenWrite()),
}


@dataclass(frozen=True)
class FoundRow:
    """A live row and where it is."""

    file: int
    position: int
    id: int
    v: int


def opened(catalog: CatalogSpec, credentials: dict[str, str], publish: str) -> Connector:
    """The connector; ``publish`` is ``own`` or one of ``UNSAFE``, on local files."""
    connector = open_connector(catalog, credentials)
    if publish == "own":
        return connector
    writes = connector.writes
    assert isinstance(writes, PaimonMergeWrites)
    filesystem = connector.storage.filesystem
    unsafe = PaimonMergeWrites(writes._metadata, filesystem, UNSAFE[publish]())
    return replace(connector, writes=unsafe)


def attempt(connector: Connector, statement: Statement, operation_id: str) -> int | None:
    """Run a statement once; the id of its snapshot, None when it changes nothing.

    Raises:
        JobError: it failed; its files are removed unless its outcome is unknown.
    """
    table = connector.metadata.load_table(NAME)

    def read_set(files: Sequence[PlannedFile]) -> Sequence[PlannedFile]:
        read = statement.kind != "append"
        return [file for file in files if read and file.partition["p"] == statement.p]

    planned = connector.metadata.plan_files(table)
    files = tuple(read_set(planned))
    if table.key_columns:
        changed, assigned = _keyed_changes(connector, table, statement, files)
    else:
        found = [row for file in files for row in _rows(connector, table, file)]
        new = statement.new_rows([row.id for row in found])
        changed, assigned = _changes(table, statement, found, new)
    if not changed:
        return None
    write = MergeWrite(
        Operation(operation_id, "digest", {}),
        files,
        assigned,
        (),
        _TARGET_SIZE,
        read_set=read_set,
        overwrites=statement.kind == "compact",
    )
    handle = connector.writes.begin_merge(table, write)
    fragments = store(handle, *changed, task=uuid.uuid4().hex)
    if statement.kind == "compact":
        fragments += connector.writes.drop_files(table, handle, files)
    try:
        made = connector.writes.finish_merge(table, handle, fragments, {})
    except JobError as error:
        if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
            with suppress(OSError):
                connector.writes.abort_merge(table, handle)
        raise
    with suppress(OSError):  # as a job: the table may be gone
        connector.writes.release_guard(table, operation_id)
    return made.snapshot_id


def _rows(connector: Connector, table: TableHandle, file: PlannedFile) -> list[FoundRow]:
    filesystem = connector.storage.filesystem
    read = pq.ParquetFile(file.path, filesystem=filesystem).read(columns=["id", "v"]).to_pydict()
    vector = table.native.files.vectors.get(file.path.rpartition("/")[2])
    gone = set(read_vector(filesystem, vector).tolist()) if vector else set()
    pairs = zip(read["id"], read["v"], strict=True)
    return [FoundRow(file.ordinal, n, *p) for n, p in enumerate(pairs) if n not in gone]


def _changes(
    table: TableHandle,
    statement: Statement,
    found: Sequence[FoundRow],
    new: Sequence[tuple[int, int, int]],
) -> tuple[list[Any], tuple[tuple[str, ...], ...]]:
    """Batches of change rows for the sink, and the columns that each case assigns."""
    marks = table.native.marks_rows
    added = [dict(zip(("id", "v", "p"), row, strict=True)) for row in new]
    touched = []
    for row in sorted(found, key=lambda row: (row.file, row.position)):
        at = {"file": row.file, "position": row.position}
        if statement.kind == "compact":
            added.append({"id": row.id, "v": row.v, "p": statement.p})
        elif statement.deletes(row.id):
            touched.append((rows.DELETE, at))
        elif statement.kind == "merge" and row.id in statement.ids:
            value = statement.updated(row.v)
            if marks:
                touched.append((rows.DELETE, at))
                added.append({"id": row.id, "v": value, "p": statement.p})
            else:
                touched.append((rows.UPDATE, {**at, "v": value}))
    # The cases are UPDATE, DELETE.
    batches = [change_rows(table, kind, [row], int(kind == rows.DELETE)) for kind, row in touched]
    return [*batches, *([inserts(table, added)] if added else [])], (("v",), ())


def _keyed_changes(
    connector: Connector,
    table: TableHandle,
    statement: Statement,
    files: Sequence[PlannedFile],
) -> tuple[list[Any], tuple[tuple[str, ...], ...]]:
    """As ``_changes``, for a table with a primary key; a compaction is an INSERT OVERWRITE."""
    found = keyed_rows(connector, table, files)
    changes = []
    for row in found:
        if statement.kind == "compact":
            changes.append(new_row({name: row[name] for name in ("id", "v", "p")}))
        elif statement.deletes(row["id"]):
            changes.append(KeyedChange(rows.DELETE, row, case=1))
        elif statement.kind == "merge" and row["id"] in statement.ids:
            changes.append(KeyedChange(rows.UPDATE, {**row, "v": statement.updated(row["v"])}))
    new = statement.new_rows([row["id"] for row in found])
    changes += [new_row(dict(zip(("id", "v", "p"), row, strict=True))) for row in new]
    return keyed_batches(table, changes), (("v",), ())


def run(plan: dict[str, Any]) -> None:
    """Random statements for ``plan["seconds"]``, with a journal of them."""
    chance = random.Random(plan["seed"])
    catalog = CatalogSpec("paimon", plan["warehouse"], plan["options"])
    connector = opened(catalog, plan["credentials"], plan["publish"])
    until = time.monotonic() + plan["seconds"]
    with journal_of(plan) as note:
        while time.monotonic() < until:
            statement, operation_id = (
                random_statement(chance, plan["partitions"]),
                f"op-{uuid.uuid4().hex}",
            )
            note(operation=operation_id, statement=asdict(statement), began=time.monotonic())
            for number in range(1, _ATTEMPTS + 1):
                try:
                    snapshot_id = attempt(connector, statement, operation_id)
                except (JobError, OSError) as failure:
                    error = translated(failure)
                    note(operation=operation_id, failed=error.code.name, text=error.message)
                    if error.code is not ErrorCode.COMMIT_CONFLICT or number == _ATTEMPTS:
                        break
                    time.sleep(chance.uniform(0, 0.05))
                else:
                    note(operation=operation_id, done=snapshot_id)
                    break


if __name__ == "__main__":
    mend_sleep()
    run(json.loads(sys.stdin.read()))
