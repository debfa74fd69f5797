"""The steps of a plan as requests of one job, and what became of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from airflow_provider_merge.care.plan import READERS, Care
from airflow_provider_merge.care.steps import Status, Step, document_of, steps_in
from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.operators._shared.configured_limits import configured_limits
from airflow_provider_merge.operators._shared.operation_id import task_operation_id, task_origin
from airflow_provider_merge.operators._shared.outcome import (
    Left,
    settle_task,
    statement_outcome,
    unheard,
)
from airflow_provider_merge.storage.failures import reaching
from airflow_provider_merge.storage.files import read_bytes, remove, write_text
from spark_jobs.contract.operation_files import plan_path
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from airflow.sdk import Context

_LARGEST_PLAN: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Asked:
    """A planned step, its request, and the hook of its catalog."""

    step: Step
    request: JobRequest
    hook: CatalogHook

    def outcome(self, left: Left = unheard) -> Step | None:
        """What became of the step, in this try or an earlier one; None: nothing is known."""
        try:
            result = statement_outcome(self.request, self.hook, left)
        except JobError as error:
            return self.step.failed(error)
        return None if result is None else _done(self.step, result)


def asked_of(steps: Iterable[Step], care: Care, context: Context, retries: int) -> list[Asked]:
    """The requests of the planned steps.

    Raises:
        RequestError: REQUEST_INVALID, naming the connection or the parameter.
    """
    planned = [each for each in steps if each.status == "planned"]
    for each in planned:
        care.require_known(each)
    specs = {conn_id: hook.catalog_spec() for conn_id, hook in care.hooks.items()}
    limits = configured_limits()
    return [
        Asked(
            step,
            JobRequest(
                operation_id=task_operation_id(context, statement=step.name),
                target=step.target,
                catalog=specs[step.catalog],
                statement=care.statement(step),
                origin=task_origin(context, retries, step.name),
                text_limits=limits,
            ),
            care.hooks[step.catalog],
        )
        for step in planned
    ]


def outcomes(asked: Sequence[Asked], left: Left = unheard) -> dict[str, Step]:
    """What became of the steps, by name, as far as it is known; ``left`` is called in threads."""
    with ThreadPoolExecutor(READERS, "care") as readers:
        found = readers.map(lambda each: each.outcome(left), asked)
        return {each.name: each for each in found if each is not None}


def settle(asked: Sequence[Asked], ended: str) -> None:
    """Forget the tries of a task that ends well."""
    with ThreadPoolExecutor(READERS, "care") as workers:
        list(workers.map(lambda each: settle_task(each.request, each.hook, ended), asked))


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """The plan of a task's first try, which the workspace keeps: retries have the same steps."""

    hook: CatalogHook
    operation_id: str

    def read(self) -> list[Step] | None:
        """The steps; None: no try got so far.

        Raises:
            CatalogError: METADATA_UNREADABLE, WORKSPACE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
            RequestError: it was written by another release.
        """
        with reaching(self._location, "workspace"):
            content = read_bytes(self._location, self._options, _LARGEST_PLAN)
        return None if content is None else steps_in(content.decode(errors="replace"), "plan")

    def write(self, steps: Sequence[Step]) -> None:
        """Keep the steps; raises as ``read`` does."""
        with reaching(self._location, "workspace"):
            write_text(self._location, json.dumps(document_of(steps, "planned")), self._options)

    def forget(self) -> None:
        """Remove what is kept.

        Raises:
            OSError: the storage refused.
        """
        remove(self._location, self._options)

    @property
    def _location(self) -> str:
        return f"{self.hook.catalog_spec().workspace_location}/{plan_path(self.operation_id)}"

    @property
    def _options(self) -> Mapping[str, object]:
        return self.hook.workspace_options()


def _done(step: Step, result: JobResult) -> Step:
    """The step with what the job really did."""
    status: Status = "unchanged" if result.status == "unchanged" else "done"
    compacted, report = result.compaction, result.maintenance
    if compacted is not None:
        return replace(
            step.ended(status),
            read=compacted.bytes_before,
            write=compacted.bytes_after,
            free=max(0, compacted.bytes_before - compacted.bytes_after),
            files=compacted.files_before - compacted.files_after,
        )
    if report is not None:
        return replace(
            step.ended(status),
            free=report.bytes_removed,
            snapshots=report.snapshots,
            at_least=False,
        )
    return step.ended(status)
