"""A process that has imported everything and forks one driver for each command.

Reads a JSON command per line and answers with a line. Forking saves the seconds that importing
takes; the forked process dies or ends, it never comes back here.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract import codec
from spark_jobs.contract.alter_table import AlterTableSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, RemoveOrphanFilesSpec
from spark_jobs.contract.request import JobRequest
from spark_jobs.engine.job.maintenance_job import MaintenanceJob
from spark_jobs.engine.job.table_jobs import AlterTableJob
from spark_jobs.engine.runtime.leftovers import leftovers_of
from spark_jobs.errors import JobError
from tests.faults.compactions import Compaction
from tests.faults.iceberg import IcebergWork
from tests.faults.iceberg_compactions import IcebergCompaction
from tests.faults.looking import look
from tests.faults.merges import Work, new_table, opened, run, run_until_done
from tests.faults.storage import Steps, die_at, fail_at
from tests.support.faketime import mend_sleep
from tests.support.paimon_tables import NAME

_EXPIRIES = ("expire", "expiry steps", "die expiring", "fail expiring")


def _forked(action: Callable[[], Any]) -> tuple[int, int]:
    """A new process that does ``action``; its pid, and where its JSON answer can be read."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    code = 1
    try:
        os.write(writer, json.dumps(action()).encode())
        code = 0
    except BaseException:  # noqa: BLE001 - the fork must not fall back into the loop
        traceback.print_exc()
    finally:
        os._exit(code)


def _answer(pid: int, reader: int) -> dict[str, Any]:
    with os.fdopen(reader, "rb") as stream:
        text = stream.read()
    status = os.waitpid(pid, 0)[1]
    signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return {"signal": signal, "value": json.loads(text) if text else None}


def _steps(warehouse: Path, work: Work) -> list[list[str]]:
    seen: list[list[str]] = []
    names = Steps(warehouse, lambda _, event, path, __: seen.append([event, path]))
    names.watch()
    run(warehouse, work, 1, _others(warehouse, work))
    return seen


def _others(warehouse: Path, work: Work) -> Callable[[], None]:
    """What happens before each publication of the work."""

    def between() -> None:
        if work.meets_others:
            work.append_by_others(warehouse)

    return between


def _dies(warehouse: Path, work: Work, step: int, how: dict[str, bool]) -> None:
    Steps(warehouse, die_at(step, **how)).watch()
    run(warehouse, work, 1, _others(warehouse, work))


def _fails(warehouse: Path, work: Work, step: int, acts: bool) -> str | None:
    """The code of the error that the driver reports; None: it reports success."""
    Steps(warehouse, fail_at(step, acts=acts)).watch()
    error = run(warehouse, work, 1, _others(warehouse, work)).error
    return error.code if error else None


def _expires(
    warehouse: Path, seen: Callable[..., None] | None, work: Work | None = None
) -> str | None:
    """The code of the error with which old snapshots did not expire; None: they did."""
    connector = work.opened(warehouse) if isinstance(work, IcebergWork) else opened(warehouse)
    care = connector.maintenance
    assert care is not None
    if seen is not None:
        Steps(warehouse, seen).watch()
    spec = ExpireSnapshotsSpec(retain_min=1, older_than="0 s")
    try:
        care.expire_snapshots(NAME, spec, dry_run=False)
    except JobError as error:
        return error.code.name
    return None


def _cares(warehouse: Path) -> list[str]:
    """What statements change that remove what is a day old."""
    connector = opened(warehouse)
    care = connector.maintenance
    assert care is not None
    expired = ExpireSnapshotsSpec(retain_min=1, older_than="1 d")
    reports = [
        care.remove_orphan_files(NAME, RemoveOrphanFilesSpec("1 d"), dry_run=False),
        care.expire_snapshots(NAME, expired, dry_run=False),
    ]
    left = leftovers_of(connector.storage, "1 d").folders
    return [*(str(each) for each in reports if each.changes), *left]


def _expiry_steps(warehouse: Path, work: Work | None) -> list[list[str]]:
    seen: list[list[str]] = []
    _expires(warehouse, lambda _, event, path, __: seen.append([event, path]), work)
    return seen


def _changes(
    warehouse: Path, work: IcebergWork | None, text: str, seen: Callable[..., None]
) -> Any:
    """Status, error and report of a request for table care, or of an ALTER TABLE."""
    request = JobRequest.from_json(text)
    connector = work.opened(warehouse) if work else open_connector(request.catalog, {})
    Steps(warehouse, seen).watch()
    alters = isinstance(request.statement, AlterTableSpec)
    job = AlterTableJob if alters else MaintenanceJob
    result = job(request, None, connector).run()
    found = result.alteration if alters else result.maintenance
    return [result.status, str(result.error), None if found is None else codec.encode(found)]


def _obey_change(warehouse: Path, command: dict[str, Any], work: Work | IcebergWork | None) -> Any:
    """Die at a step, or tell the outcome and all steps."""
    text = command["request"]
    if "step" in command:
        seen = die_at(command["step"], **command["how"])
        return _answer(*_forked(lambda: _changes(warehouse, work, text, seen)))
    steps: list[list[str]] = []

    def told() -> Any:
        noted = lambda _, event, path, __: steps.append([event, path])  # noqa: E731
        return {"outcome": _changes(warehouse, work, text, noted), "steps": steps}

    return _answer(*_forked(told))


def _compacts(warehouse: Path, work: Compaction, seen: Callable[..., None] | None) -> list[Any]:
    """Status, error and report of the first try, or of the second one if nobody has ``seen``."""

    def between() -> None:
        if work.meets_others and seen is not None:
            work.change_by_others(warehouse)

    if seen is not None:
        Steps(warehouse, seen).watch()
    result = work.run(warehouse, 2 if seen is None else 1, between)
    report = None if result.compaction is None else asdict(result.compaction)
    return [result.status, str(result.error), report]


def _compaction_steps(warehouse: Path, work: Compaction) -> list[list[str]]:
    seen: list[list[str]] = []
    _compacts(warehouse, work, lambda _, event, path, __: seen.append([event, path]))
    return seen


def _obey_compaction(what: str, warehouse: Path, command: dict[str, Any]) -> Any:
    made = command["compaction"]
    work = (IcebergCompaction if "server" in made else Compaction)(**made)
    if what == "compaction steps":
        return _answer(*_forked(lambda: _compaction_steps(warehouse, work)))
    if what == "die compacting":
        seen = die_at(command["step"], **command["how"])
        return _answer(*_forked(lambda: _compacts(warehouse, work, seen)))
    if what == "fail compacting":
        seen = fail_at(command["step"], acts=command["acts"])
        return _answer(*_forked(lambda: _compacts(warehouse, work, seen)))
    if what == "find orphans":

        def found() -> Any:
            count, left = work.orphans_left(warehouse)
            return count, sorted(left)

        return _answer(*_forked(found))
    return _answer(*_forked(lambda: _compacts(warehouse, work, None)))


def _tries(warehouse: Path, work: Work, number: int) -> list[Any]:
    """Status, error and the number of the try that did it."""
    result = run(warehouse, work, number)
    return [result.status, str(result.error), result.try_number, result.new_snapshot_id]


def _races(warehouse: Path, works: list[Work]) -> list[dict[str, Any]]:
    """Each work in a process of its own; all publish at the same time."""
    go_read, go_write = os.pipe()
    ready_read, ready_write = os.pipe()

    waited: list[bool] = []

    def wait() -> None:
        # Only the first publication of each process is held up.
        if not waited:
            waited.append(True)
            os.write(ready_write, b"r")
            os.read(go_read, 1)

    def once(work: Work) -> Any:
        error = run(warehouse, work, 1, wait).error
        if not waited:
            wait()  # It failed before its publication; the other one waits for it.
        return error.code if error else "committed"

    children = [_forked(lambda w=work: once(w)) for work in works]  # type: ignore[misc]
    for _ in works:
        os.read(ready_read, 1)
    os.write(go_write, b"g" * len(works))
    answers = [_answer(*child) for child in children]
    for descriptor in (go_read, go_write, ready_read, ready_write):
        os.close(descriptor)
    return answers


def _obey_expiry(warehouse: Path, command: dict[str, Any], work: Work | None) -> Any:
    if command["do"] == "expire":
        return _answer(*_forked(lambda: _expires(warehouse, None, work)))
    if command["do"] == "expiry steps":
        return _answer(*_forked(lambda: _expiry_steps(warehouse, work)))
    if command["do"] == "die expiring":
        seen = die_at(command["step"], **command["how"])
        return _answer(*_forked(lambda: _expires(warehouse, seen, work)))
    seen = fail_at(command["step"], acts=command["acts"])
    return _answer(*_forked(lambda: _expires(warehouse, seen, work)))


def _obey(command: dict[str, Any]) -> Any:
    warehouse = Path(command["warehouse"])
    if "compaction" in command:
        return _obey_compaction(command["do"], warehouse, command)
    works = [(IcebergWork if "server" in each else Work)(**each) for each in command["works"]]
    if command["do"] == "change":
        return _obey_change(warehouse, command, works[0] if works else None)
    if command["do"] == "steps":
        return _answer(*_forked(lambda: _steps(warehouse, works[0])))
    if command["do"] == "die":
        step, how = command["step"], command["how"]
        return _answer(*_forked(lambda: _dies(warehouse, works[0], step, how)))
    if command["do"] == "fail":
        step, acts = command["step"], command["acts"]
        return _answer(*_forked(lambda: _fails(warehouse, works[0], step, acts)))
    if command["do"] == "try":
        return _answer(*_forked(lambda: _tries(warehouse, works[0], command["number"])))
    if command["do"] == "care":
        return _answer(*_forked(lambda: _cares(warehouse)))
    if command["do"] in _EXPIRIES:
        return _obey_expiry(warehouse, command, works[0] if works else None)
    if command["do"] == "race":
        return _races(warehouse, works)
    children = [
        _forked(lambda w=work: run_until_done(warehouse, w))  # type: ignore[misc]
        for work in works
    ]
    return [_answer(*child) for child in children]


def _used_modules() -> list[str]:
    """What a driver imports while it works; found out in a process that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        new_table(Path(folder), marks=True)
        run(Path(folder), Work("warm-up", 100, marks=True), 1)
        look(Path(folder), "shop.orders")
        _expires(Path(folder), None)
    # Its catalog is a SQL one.
    if importlib.util.find_spec("sqlalchemy") is not None:
        with tempfile.TemporaryDirectory() as folder:
            work = IcebergWork("warm-up", 100, marks=True)
            work.new_table(Path(folder))
            work.append_by_others(Path(folder))
            run(Path(folder), work, 1)
            work.look(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        for work in (Compaction(marks=True), Compaction(has_key=True)):
            (Path(folder) / str(work)).mkdir()
            work.new_table(Path(folder) / str(work))
            _compacts(Path(folder) / str(work), work, None)
    return sorted(sys.modules)


def main() -> None:
    for name in (*_answer(*_forked(_used_modules))["value"], "pyiceberg.catalog.glue"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_obey(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    mend_sleep()
    main()
