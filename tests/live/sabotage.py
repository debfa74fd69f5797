"""Failures at exact points of a real job: signals and the file system, no hook in the code."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import psutil

from tests.live.table import Table, is_python
from tests.support.waiting import wait_for


def pause_before_commit(table: Table) -> str:
    """Stop the driver's Python between the guard and the commit; the operation id.

    Of several jobs one that is stopped in time; the others go on.
    """
    return wait_for(f"a driver of {table.name} before its commit", lambda: _paused(table))


def resume(table: Table, operation_id: str) -> None:
    """Let a stopped driver go on."""
    drivers = _drivers(table, operation_id)
    assert drivers
    for process in drivers:
        process.resume()


def pause_when(table: Table, what: str, look: Callable[[str], bool]) -> str:
    """Stop the only job's Python once ``look`` is true of its operation id; that id.

    It has committed nothing yet.
    """
    operation_id = table.driver_under_way()
    wait_for(what, lambda: look(operation_id), every=0.01)
    _stop(_drivers(table, operation_id))
    assert operation_id not in table.operation_ids(), "the driver was stopped too late"
    return operation_id


def pause_after_commit(table: Table) -> str:
    """Stop the driver's Python after its snapshot and before its result; the operation id.

    A pipe that nobody writes lies where the result's file will be: the driver looks there for an
    earlier result before it stores its own, and hangs until it is stopped.
    """
    operation_id = table.operation_under_way()
    newest = table.snapshots()[-1]
    pipe = table.result_file(operation_id)
    os.mkfifo(pipe)
    try:
        wait_for(f"snapshot {newest + 1}", lambda: table.snapshots()[-1] > newest, every=0.01)
        _stop(_drivers(table, operation_id))
        assert pipe.is_fifo(), "the driver was stopped too late for this test"
    finally:
        pipe.unlink()
    return operation_id


def kill_job(table: Table, operation_id: str) -> None:
    """SIGKILL every process of the job."""
    _kill(table.processes(operation_id))


def kill_worker(table: Table, operation_id: str, *, with_job: bool) -> None:
    """SIGKILL the worker that runs the job's task, and its task process, as a lost node does.

    Without the job, its processes live on as orphans.
    """
    job = table.processes(operation_id)
    runner = _first_ancestor_outside(job)
    worker = runner.parent()
    assert worker is not None
    assert "LocalExecutor" in " ".join(worker.cmdline()), worker.cmdline()
    # The worker first: it would report the death of its task process.
    _kill([worker, runner, *(job if with_job else [])])


def _first_ancestor_outside(job: list[psutil.Process]) -> psutil.Process:
    """The task process: parent of the launcher, which is the job's oldest process."""
    oldest = min(job, key=lambda process: (process.create_time(), process.pid))
    parent = oldest.parent()
    assert parent is not None
    assert parent not in job
    return parent


def _drivers(table: Table, operation_id: str) -> list[psutil.Process]:
    return [process for process in table.processes(operation_id) if is_python(process)]


def _paused(table: Table) -> str:
    operation_id = table.operation_under_way()
    drivers = _drivers(table, operation_id)
    _stop(drivers)
    if drivers and operation_id not in table.operation_ids():
        return operation_id
    for process in drivers:
        with suppress(psutil.NoSuchProcess):
            process.resume()
    return ""


def _stop(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    wait_for("processes to stop", lambda: not any(map(_goes_on, processes)))


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    wait_for("killed processes to end", lambda: not any(map(lives, processes)))


def lives(process: psutil.Process) -> bool:
    """Whether it has not ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _goes_on(process: psutil.Process) -> bool:
    try:
        return str(process.status()) not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
