"""Several statements in one Spark application: in order, or in parallel where independent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.runtime.progress import log

CheckOne = Callable[[JobRequest], JobResult | None]
RunOne = Callable[[JobRequest], JobResult]


def run_batch(batch: JobBatch, check_one: CheckOne, run_one: RunOne) -> Mapping[int, JobResult]:
    """Run the requests; return the results by position, without requests that did not run.

    First, ``check_one`` checks every request that needs no other request (None: there is nothing to
    check). If one of them fails, nothing runs. Neither function raises.
    """
    refused = _refused(batch, check_one)
    if refused:
        return refused
    return _Run(batch, run_one).results()


def _refused(batch: JobBatch, check_one: CheckOne) -> dict[int, JobResult]:
    pairs = zip(batch.requests, batch.needs(), strict=True)
    checked = {
        index: check_one(request)
        for index, (request, needed) in enumerate(pairs)
        # A request that it needs may make what it reads.
        if not needed
    }
    return {index: each for index, each in checked.items() if each and each.error is not None}


class _Run:
    """The state of a running batch."""

    def __init__(self, batch: JobBatch, run_one: RunOne) -> None:
        self._batch = batch
        self._needs = batch.needs()
        self._run_one = run_one
        self._waiting = list(range(len(batch.requests)))
        self._running: dict[Future[JobResult], int] = {}
        self._ended: dict[int, JobResult] = {}

    def results(self) -> Mapping[int, JobResult]:
        with ThreadPoolExecutor(self._batch.max_parallel, "statement") as pool:
            while self._start(pool) or self._running:
                done, _ = wait(self._running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._ended[self._running.pop(future)] = future.result()
        return dict(sorted(self._ended.items()))

    def _start(self, pool: ThreadPoolExecutor) -> bool:
        """Start what can run now; return whether anything was started."""
        if self._is_stopped():
            if self._waiting:
                log.info("not run, because one before failed: %d", len(self._waiting))
                self._waiting.clear()
            return False
        started = False
        for index in list(self._waiting):
            if len(self._running) == self._batch.max_parallel:
                break
            if self._needs[index] <= self._ended.keys():
                request = self._batch.requests[index]
                self._running[pool.submit(self._run_one, request)] = index
                self._waiting.remove(index)
                started = True
        return started

    def _is_stopped(self) -> bool:
        failed = any(result.error is not None for result in self._ended.values())
        return failed and self._batch.on_failure == "stop"
