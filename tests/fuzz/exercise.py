"""What a job does with an attacked table: everything reads, and a merge is committed if it can be.

Never allowed: an exception that is no ``JobError``, an INTERNAL_ERROR, a file outside of the
warehouse, and a commit after which the table does not hold what it held before plus the change.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.paimon.format.vectors import read_vector
from spark_jobs.connectors.paimon.read.arrow_scan import ArrowScan, ScannedFile
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.datafiles.row_groups import read_row
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi import rows
from spark_jobs.spi.arrow_tasks import ScanTasks
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import PlannedFile
from tests.fuzz.mutations import OUTSIDE
from tests.fuzz.warehouse import DONE, KILLED, NEW, TABLES
from tests.support import paimon_tables

_EVENTS = ("open", "os.remove", "os.rename", "os.link", "os.rmdir", "os.mkdir", "os.listdir")
_touched: list[str] = []


class ViolationError(Exception):
    """Something happened that no damaged file may bring about."""


def exercise(warehouse: Path) -> str:
    """Use every table of the warehouse; a word for what came of it.

    Raises:
        ViolationError: see the module.
        Exception: what got out that is no ``JobError``.
    """
    outcomes = set()
    with _watched(warehouse.parent):
        connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
        OperationLog(connector.storage).read(DONE)
        for name in TABLES:
            outcomes |= {_looked_at(connector, name, warehouse), _merged(connector, name)}
    return ", ".join(sorted(outcomes))


def _looked_at(connector: Connector, name: TableName, warehouse: Path) -> str:
    def look() -> None:
        table = connector.metadata.load_table(name)
        files = connector.metadata.plan_files(table)
        connector.metadata.require_writable(table)
        connector.metadata.insert_layout(table)
        filesystem = connector.storage.filesystem
        for file in files:
            _require_inside(file.path, warehouse)
            for column in table.column_names:
                file.ranges[column]  # decodes the statistics
        for vector in table.native.files.vectors.values():
            _require_inside(vector.path, warehouse)
            read_vector(filesystem, vector)
        _only_job_errors(lambda: _scan(table, files, filesystem))
        for file in files:
            last = file.row_count - 1
            _only_job_errors(
                lambda path=file.path, last=last: read_row(filesystem, path, last, ["id"])
            )
        for operation in (DONE, KILLED, NEW):
            _only_job_errors(
                lambda operation=operation: connector.writes.find_commit(table, operation)
            )

    return _only_job_errors(look)


def _scan(table: Any, files: Sequence[PlannedFile], filesystem: Any) -> None:
    """Read all columns by pyarrow, as executors do."""
    vectors = table.native.files.vectors
    task = tuple(
        ScannedFile(each.ordinal, each.path, vectors.get(each.path.rpartition("/")[2]))
        for each in files
    )
    reader = ArrowScan(filesystem, tuple(paimon_tables.schema_of(table)), {}, {})
    scan = ScanTasks(reader, (task,))
    list(scan([pa.RecordBatch.from_pydict({"task": [0]})]))


def _merged(connector: Connector, name: TableName) -> str:
    """Delete a row, change one and add one, where the metadata can be read at all."""
    try:
        table = connector.metadata.load_table(name)
        files = connector.metadata.plan_files(table)
    except JobError:
        return "refused"
    before = _rows(connector, name)
    snapshot = table.snapshot_id

    def merge() -> None:
        handle = paimon_tables.begin(connector, table, NEW, ((),))
        batches = []
        for file in files:
            if file.live_row_count and file.row_count < 10**6:
                last = {"file": file.ordinal, "position": file.row_count - 1}
                batches.append(paimon_tables.change_rows(table, rows.DELETE, [last]))
        added = {"id": -1, "name": "new"}
        batches.append(paimon_tables.inserts(table, [added]))
        try:
            fragments = paimon_tables.store(handle, *batches)
            connector.writes.finish_merge(table, handle, fragments, {})
        except BaseException:
            connector.writes.abort_merge(table, handle)
            raise

    outcome = _only_job_errors(merge)
    after = _rows(connector, name)
    if before is None:
        return outcome
    if outcome != "fine":
        if after is not None and after != before:
            raise ViolationError(f"{name} has changed, although the merge failed: {outcome}")
        return outcome
    _require_merged(name, before, after, len(files), snapshot)
    return outcome


def _require_merged(
    name: TableName, before: Counter[str], after: Counter[str] | None, files: int, snapshot: Any
) -> None:
    if after is None:
        raise ViolationError(f"{name} cannot be read any more after a commit on {snapshot}")
    lost, new = before - after, after - before
    if lost.total() > files or new.total() != 1:
        raise ViolationError(
            f"{name} lost {lost.total()} rows of {files} files, got {list(new)[:3]}"
        )


def _rows(connector: Connector, name: TableName) -> Counter[str] | None:
    """All rows as pypaimon reads them; None where it cannot."""
    try:
        return Counter(map(repr, paimon_tables.read(connector, name)))
    except Exception:  # noqa: BLE001 - it makes no promises for damaged files
        return None


def _only_job_errors(action: Callable[[], Any]) -> str:
    try:
        action()
    except JobError as error:
        if error.code is ErrorCode.INTERNAL_ERROR:
            raise
        if len(str(error)) > 20_000:
            raise ViolationError(f"an error of {len(str(error))} characters") from error
        return error.code.name
    return "fine"


def _require_inside(path: str, folder: Path) -> None:
    if OUTSIDE in path or not os.path.realpath(path).startswith(f"{folder}/"):
        raise ViolationError(f"{path} is outside of the warehouse")


@contextmanager
def _watched(folder: Path) -> Iterator[None]:
    """Fail when Python itself opens or changes what no job may."""
    _touched.clear()
    if not getattr(_watched, "hooked", False):
        sys.addaudithook(_note)
        _watched.hooked = True  # type: ignore[attr-defined]
    yield
    for path in _touched:
        if OUTSIDE in path:
            raise ViolationError(f"{path} was touched")


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _EVENTS:
        _touched.extend(os.fsdecode(each) for each in arguments if isinstance(each, str | bytes))
