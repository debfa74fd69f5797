"""Dry runs: their base, and ``dry_run_of``: whose mark one of an incremental source goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators._shared.values import flag, text
from airflow_provider_merge.task_errors import naming_task
from airflow_provider_merge.templates import is_template
from spark_jobs.contract.incremental import require_mark_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_merge.hooks.catalog import CatalogHook
    from spark_jobs.contract.request import JobRequest

DRY_RUN_OF: Final = "dry_run_of"
_REMEDY: Final = "Name the task that does what this one foretells, in the same DAG."


class DryRunOperator(TableOperator):
    """An operator with a dry run.

    :param dry_run: true: report what would change or be removed, with the status ``dry_run``; store
        nothing, and send no asset event
    """

    template_fields: Sequence[str] = (*TableOperator.template_fields, "dry_run")

    def __init__(self, *, dry_run: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Takes the place of BaseOperator.dry_run(), which Airflow 3 never calls.
        self.dry_run = dry_run  # type: ignore[method-assign,assignment]
        if not is_template(dry_run):
            self.is_dry_run()

    def after_rendering(self) -> None:
        """A dry run has no outlet, whatever becomes of it, and so no output in lineage.

        Airflow sends an event for every outlet of a task that succeeds.
        """
        super().after_rendering()
        if self.is_dry_run():
            self.outlets = []

    def is_dry_run(self) -> bool:
        """``dry_run`` from rendered parameters."""
        return flag("dry_run", cast("bool | str", self.dry_run))


class IncrementalOperator(DryRunOperator):
    """Can read incremental sources, whose mark says how far the task has applied them.

    :param dry_run_of: of a dry run with an incremental source: the id of the task that it foretells
        (with those of its groups), in the same DAG: it reads what that task would read next, and
        moves no mark; default: it goes by its own mark
    """

    remedies: ClassVar[Mapping[str, str]] = {DRY_RUN_OF: _REMEDY}

    def __init__(self, *, dry_run_of: Any = None, **kwargs: Any) -> None:
        # Known when the parameters are checked together.
        self.dry_run_of = task_named(dry_run_of)
        super().__init__(**kwargs)

    def resolve_template_files(self) -> None:
        """Look for the task when the whole DAG is known."""
        super().resolve_template_files()
        with naming_task(self.task_id):
            require_task(self, self.dry_run_of)

    def foretold_task(self) -> str:
        """The task whose mark a dry run goes by, from rendered parameters; empty: its own."""
        return task_named(self.dry_run_of) or ""

    def job_request(self, context: Context, hook: CatalogHook, statement: str = "") -> JobRequest:
        """The request; the task that it foretells is in the DAG."""
        require_task(self, self.dry_run_of)
        return super().job_request(context, hook, statement)


def task_named(value: Any) -> str | None:
    """The id of a task, which may be given as the task.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    if isinstance(value, str) and not is_template(value):
        value = value.strip()
    named = value if is_template(value) else text(DRY_RUN_OF, getattr(value, "task_id", value))
    return cast("str | None", named)


def require_task(operator: Any, named: str | None) -> None:
    """Check that the DAG of ``operator`` has the task, and that it does such work.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    if named is None or is_template(named) or not operator.has_dag():
        return
    tasks = operator.get_dag().task_dict
    if named not in tasks:
        close = get_close_matches(named, tasks, n=1, cutoff=0.4)
        near = [each for each in tasks if each.endswith(f".{named}")] or close
        guess = f"Did you mean {near[0]}? " if near else ""
        raise invalid(DRY_RUN_OF, f"the DAG has no task {named!r}", f"{guess}{_REMEDY}")
    task = tasks[named]
    kind = getattr(task, "operator_class", type(task))
    if kind is not type(operator):
        problem = f"task {named!r} is a {kind.__name__}, and this one a {type(operator).__name__}"
        raise invalid(DRY_RUN_OF, problem, _REMEDY)
    if getattr(task, "dry_run", False) in (True, "plan"):
        problem = f"task {named!r} is a dry run, too, and has no mark"
        raise invalid(DRY_RUN_OF, problem, _REMEDY)


def foretelling(
    operator: Any, requests: Mapping[str, JobRequest], *, dry_run: bool
) -> Mapping[str, JobRequest]:
    """The requests of a list, of which those of incremental sources go by the marks of the task.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    task = task_named(operator.dry_run_of)
    if task is None:
        return requests
    require_task(operator, task)
    sources = [source for request in requests.values() for source in request.sources]
    require_mark_of(task, sources, dry_run=dry_run)
    return {
        name: replace(request, origin=replace(request.origin, dry_run_of=task))
        if any(each.is_incremental for each in request.sources)
        else request
        for name, request in requests.items()
    }
