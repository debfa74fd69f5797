"""Failures at exact points of a real job: signals and the file system, no hook in the code."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil

from tests.live.orders import Orders
from tests.live.waiting import wait_for


def pause_before_commit(orders: Orders) -> str:
    """Stop the driver's Python between the guard and the commit; the operation id."""
    operation_id = orders.operation_under_way()
    before = orders.snapshots()
    _stop(_drivers(orders, operation_id))
    assert orders.snapshots() == before, "the driver was stopped too late for this test"
    return operation_id


def resume(orders: Orders, operation_id: str) -> None:
    """Let a stopped driver go on."""
    for process in _drivers(orders, operation_id):
        process.resume()


def pause_after_commit(orders: Orders) -> str:
    """Stop the driver's Python after its snapshot and before its result; the operation id.

    A pipe that nobody writes lies where the result's file will be: the driver looks there for an
    earlier result before it stores its own, and hangs until it is stopped.
    """
    operation_id = orders.operation_under_way()
    newest = orders.snapshots()[-1]
    pipe = orders.result_file(operation_id)
    os.mkfifo(pipe)
    try:
        wait_for(f"snapshot {newest + 1}", lambda: orders.snapshots()[-1] > newest, every=0.01)
        _stop(_drivers(orders, operation_id))
        assert pipe.is_fifo(), "the driver was stopped too late for this test"
    finally:
        pipe.unlink()
    return operation_id


def kill_job(orders: Orders, operation_id: str) -> None:
    """SIGKILL every process of the job."""
    _kill(orders.processes(operation_id))


def kill_worker(orders: Orders, operation_id: str, *, with_job: bool) -> None:
    """SIGKILL the worker that runs the job's task, and its task process, as a lost node does.

    Without the job, its processes live on as orphans.
    """
    job = orders.processes(operation_id)
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


def _drivers(orders: Orders, operation_id: str) -> list[psutil.Process]:
    job = orders.processes(operation_id)
    found = [process for process in job if process.name().startswith("python")]
    assert found
    return found


def _stop(processes: list[psutil.Process]) -> None:
    for process in processes:
        process.suspend()
    stopped = psutil.STATUS_STOPPED
    wait_for("processes to stop", lambda: all(each.status() == stopped for each in processes))


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    wait_for("killed processes to end", lambda: not any(_lives(each) for each in processes))


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
