"""What became of the statements of one job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_merge.exceptions import airflow_exception
from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.metadata.operations import require_open
from airflow_provider_merge.operators._shared.asset_events import TableChange
from airflow_provider_merge.operators._shared.outcome import (
    Left,
    no_result,
    statement_outcome,
    unheard,
)
from airflow_provider_merge.submit.submitter import SubmissionError
from airflow_provider_merge.task_failures import TaskFailure, failure_of
from spark_jobs.contract.operation_files import FOLDER
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from airflow_provider_merge.operators._shared.table_operator import TableOperator


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """By the names of the statements: results, errors, and those that left neither.

    ``failure``: how the process of the job ended, if it failed; ``location``: where results are;
    ``places``: where statements stand, if that is in files.
    """

    results: Mapping[str, JobResult]
    errors: Mapping[str, TaskFailure]
    missing: Sequence[str]
    failure: SubmissionError | None
    location: str
    places: Mapping[str, str] = field(default_factory=dict)

    def require_all(self, where: str) -> None:
        """Fail, with the place of the task, unless each statement has a result.

        Raises:
            FinalFailure: all errors are final.
            PassingFailure: a retry may help; it repeats none that has a result.
        """
        if self.errors:
            failures = [each.first for each in self.errors.values()]
            raise failure_of(f"{self._told()}\nWhere: {where}", failures)
        if self.missing:
            missing = f"No result: {', '.join(self.missing)}. {self._done()}"
            raise airflow_exception(no_result(self.location, self.failure, missing), where)

    def changes(self, operators: Mapping[str, TableOperator]) -> Iterator[TableChange]:
        """What consumers of the tables' assets learn."""
        for name, operator in operators.items():
            if operator.emits_asset_event:
                kind = operator.statement().kind
                yield TableChange(operator.target_table(), kind, self.results[name])

    def _told(self) -> str:
        total = len(self.results) + len(self.errors) + len(self.missing)
        lines = [f"{len(self.errors)} of {total} statements failed:"]
        lines += [f"{self._placed(name)}: {error}" for name, error in self.errors.items()]
        if self.missing:
            lines.append(f"Not run, because one before failed: {', '.join(self.missing)}")
        return "\n".join([*lines, self._done()])

    def _placed(self, name: str) -> str:
        place = self.places.get(name)
        return f"{name} ({place})" if place else name

    def _done(self) -> str:
        return f"Done, and not repeated by a retry: {', '.join(self.results) or 'none'}."


def batch_outcome(
    requests: Mapping[str, JobRequest],
    hook: CatalogHook,
    failure: SubmissionError | None,
    places: Mapping[str, str],
    left: Left = unheard,
) -> BatchOutcome:
    """Read what the statements left; ``requests`` and ``places`` by their names, at least one.

    ``left`` hears of the results, of failures too.

    Raises:
        CatalogError: WORKSPACE_ACCESS_DENIED: none could leave anything.
        InternalError: STORAGE_UNAVAILABLE.
    """
    results: dict[str, JobResult] = {}
    errors: dict[str, TaskFailure] = {}
    missing: list[str] = []
    for name, request in requests.items():
        try:
            result = statement_outcome(request, hook, left)
        except JobError as error:
            errors[name] = airflow_exception(error, "", str(request.target or ""), name)
        else:
            if result is None:
                missing.append(name)
            else:
                results[name] = result
    first = next(iter(requests.values()))
    if len(missing) == len(requests):
        require_open(first, hook.workspace_options())
    workspace = first.catalog.workspace_location
    return BatchOutcome(results, errors, missing, failure, f"{workspace}/{FOLDER}", places)
