"""``TableCareOperator``: compaction, expiry and orphan removal for all tables of a catalog."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from airflow_provider_merge.care.patterns import Pattern, patterns
from airflow_provider_merge.care.plan import EVERYTHING, Care
from airflow_provider_merge.care.steps import ACTIONS, Step, document_of, line_of, steps_in
from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.catalog import CatalogHook, catalog_hook_once
from airflow_provider_merge.links import TABLE_PAGE
from airflow_provider_merge.metadata.operations import require_open
from airflow_provider_merge.operators._shared.care_run import (
    Asked,
    KeptPlan,
    asked_of,
    outcomes,
    settle,
)
from airflow_provider_merge.operators._shared.measured import measuring
from airflow_provider_merge.operators._shared.operation_id import task_operation_id, task_origin
from airflow_provider_merge.operators._shared.rights import require_workspace_rights
from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator
from airflow_provider_merge.operators._shared.timeouts import telling_timeouts
from airflow_provider_merge.operators._shared.values import byte_size, flag, limit, whole_number
from airflow_provider_merge.table_pages import page_of_task
from airflow_provider_merge.task_errors import task_failure, task_place
from airflow_provider_merge.task_failures import Failure, FinalFailure, PassingFailure, TaskFailure
from airflow_provider_merge.templates import has_template, when_rendered
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.checks import not_among
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, RemoveOrphanFilesSpec
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import ErrorInfo
from spark_jobs.contract.sizes import parse_size
from spark_jobs.errors import ErrorCode, JobError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_merge.care.facts import Statement
    from airflow_provider_merge.submit.submitter import SubmissionError

_SHOWN: Final = 100
_ON_FAILURE: Final = ("fail", "warn")


class TableCareOperator(SparkJobOperator):
    """Takes care of all tables of a catalog, or of those that patterns fit, in one application.

    Metadata tells what there is to do; what is worth most is done first, within ``max_bytes`` and
    ``max_seconds``, by the tables' own options. Each table is by itself: what fails on one does not
    stop the others. A retry does what is left. No asset event is sent. Guide:
    docs/operators/table_care.md.

    :param tables: a pattern such as ``shop.*``, or a list of them; default: all tables. As names
        do, one may begin with the catalog's name: ``lake.shop.*``
    :param exclude: a pattern of tables to leave alone, or a list of them
    :param actions: list of ``compact``, ``expire_snapshots`` and ``remove_orphan_files``; default:
        the first two
    :param more_catalogs: ids of further catalog connections, of any format, whose tables are taken
        care of in the same application
    :param retain_max: as for ``ExpireSnapshotsOperator``; so are ``retain_min`` and ``older_than``
    :param retain_min: as for ``ExpireSnapshotsOperator``
    :param older_than: as for ``ExpireSnapshotsOperator``
    :param orphans_older_than: as ``older_than`` of ``RemoveOrphanFilesOperator``
    :param max_bytes: compactions read at most so much in all, such as ``500 gb``
    :param max_seconds: nothing is begun later than so many seconds after the first step
    :param max_parallel: how many tables are worked on at a time
    :param on_failure: ``fail`` (default): the task fails at its end if a table failed; ``warn``: it
        only says so
    :param dry_run: true: plan only; Spark is not started
    :param plan: the result of a dry run, or its JSON: only what was planned there is done
    """

    template_fields: Sequence[str] = (
        *SparkJobOperator.template_fields,
        "tables",
        "exclude",
        "actions",
        "more_catalogs",
        "retain_max",
        "retain_min",
        "older_than",
        "orphans_older_than",
        "max_bytes",
        "max_seconds",
        "max_parallel",
        "on_failure",
        "dry_run",
        "plan",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **SparkJobOperator.template_fields_renderers,
        "plan": "json",
    }

    def __init__(
        self,
        *,
        tables: Sequence[str] | str | None = None,
        exclude: Sequence[str] | str = (),
        actions: Sequence[str] = ACTIONS[:2],
        more_catalogs: Sequence[str] = (),
        retain_max: int | str | None = None,
        retain_min: int | str | None = None,
        older_than: str | None = None,
        orphans_older_than: str = "1 d",
        max_bytes: str | None = None,
        max_seconds: int | str | None = None,
        max_parallel: int | str = 1,
        on_failure: str = "fail",
        dry_run: bool | str = False,
        plan: Mapping[str, Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tables = tables
        self.exclude = exclude
        self.actions = actions
        self.more_catalogs = more_catalogs
        self.retain_max = retain_max
        self.retain_min = retain_min
        self.older_than = older_than
        self.orphans_older_than = orphans_older_than
        self.max_bytes = max_bytes
        self.max_seconds = max_seconds
        self.max_parallel = max_parallel
        self.on_failure = on_failure
        # Takes the place of BaseOperator.dry_run(), which Airflow 3 never calls.
        self.dry_run = dry_run  # type: ignore[method-assign,assignment]
        self.plan = plan
        if plan is not None:
            for name in ("tables", "exclude"):
                if getattr(self, name):
                    self.refuse(name, "cannot be combined with plan", "The plan names the tables.")
        self._check_parameters()

    @when_rendered
    @measuring
    @telling_timeouts
    def execute(self, context: Context) -> dict[str, Any]:
        """Plan, do what is planned, and return what became of each table."""
        self.pages[TABLE_PAGE] = page_of_task(task_origin(context, self.retries or 0))
        try:
            self._check_parameters()
            care = Care(self._hooks(), self._statements(), self._most_bytes())
            if self._is_dry_run():
                return self._told(self._new_steps(care), "dry_run")
            kept_plan = KeptPlan(care.hooks[self.catalog_conn_id], task_operation_id(context))
            steps = kept_plan.read()
            if steps is None:
                steps = self._new_steps(care)
                if any(each.status == "planned" for each in steps):
                    kept_plan.write(steps)
            asked = asked_of(steps, care, context, self.retries or 0)
            ended, failure = self._run(asked, context)
        except JobError as error:
            raise task_failure(error, context) from None
        final = [ended.get(each.name, each) for each in steps]
        result = self._told(final, "done")
        try:
            self._require_all(final, {each.step.name for each in asked}, failure, context)
        except TaskFailure:
            # Of a task that fails, Airflow keeps no result.
            context["ti"].xcom_push("return_value", result)
            raise
        self._forget(kept_plan, asked, context)
        return result

    def require_rights(self, asked: Sequence[tuple[JobRequest, CatalogHook]]) -> None:
        """Only those in workspaces: a table that cannot be written must not stop the others."""
        for request, _ in asked:
            require_workspace_rights(request)

    def _run(
        self, asked: Sequence[Asked], context: Context
    ) -> tuple[dict[str, Step], SubmissionError | None]:
        """What became of the steps, of which only those run that no earlier try has done."""
        done: dict[str, Step] = {}
        if context["ti"].try_number > 1:
            earlier = outcomes(asked)
            done = {n: each for n, each in earlier.items() if each.status in ("done", "unchanged")}
        rest = [each for each in asked if each.step.name not in done]
        if not rest:
            return done, None
        batch = JobBatch(
            operation_id=task_operation_id(context),
            requests=tuple(each.request for each in rest),
            max_parallel=self._most_at_once(),
            on_failure="continue",
            max_seconds=whole_number("max_seconds", self.max_seconds),
        )
        job = self.submit(batch, [each.hook for each in rest], context)
        ended = outcomes(rest, self.measured.left)
        if not ended:
            require_open(rest[0].request, rest[0].hook.workspace_options())
        return done | ended, job.failure

    def _new_steps(self, care: Care) -> list[Step]:
        if self.plan is not None:
            return care.of_plan(steps_in(self.plan, "plan"))
        return care.of_patterns(self._wanted(), self._excluded())

    def _told(self, steps: Sequence[Step], status: str) -> dict[str, Any]:
        """Log the steps, and return the result."""
        for each in steps[:_SHOWN]:
            self.log.info("%s", line_of(each))
        if len(steps) > _SHOWN:
            self.log.info("and %d more, which the result lists", len(steps) - _SHOWN)
        result = document_of(steps, status)
        counts = ", ".join(f"{name} {count:,}" for name, count in result["counts"].items())
        self.log.info("In all: %s", counts or "no tables")
        return result

    def _require_all(
        self,
        steps: Sequence[Step],
        tried: Collection[str],
        failure: SubmissionError | None,
        context: Context,
    ) -> None:
        """Fail if a table failed, or the job was lost; what is done stays done.

        ``tried`` has the names of planned steps: what could not be planned is not looked at again.

        Raises:
            FinalFailure: all errors are final.
            PassingFailure: a retry may help.
        """
        lost = [each for each in steps if each.status == "planned"]
        failed = [each for each in steps if each.status == "failed"]
        lines = [f"{each.name}: {each.error}" for each in failed]
        if lost:
            ended = f"The job ended before its end: {failure}" if failure else "The job ended."
            lines += [ended, *(f"No result: {each.name}" for each in lost)]
        if not lost and self.on_failure == "warn":
            for line in lines:
                self.log.warning("%s", line)
        elif lines:
            more = [f"and {len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []
            done = sum(each.status in ("done", "unchanged") for each in steps)
            told = [
                f"{len(failed) + len(lost)} of {len(steps)} steps of table care failed:",
                *lines[:_SHOWN],
                *more,
                f"Done, and not repeated by a retry: {done}.",
                f"Where: {task_place(context)}",
            ]
            again = any(each.error.code.retryable for each in failed if each.name in tried)
            kind = PassingFailure if lost or again else FinalFailure
            failures = [Failure.of(ErrorInfo.of(e.error), e.table, e.name) for e in failed]
            unknown = ErrorCode.SPARK_FAILED.name
            failures += [Failure(unknown, "No result", "", True, e.table, e.name) for e in lost]
            raise kind("\n".join(told), failures)

    def _forget(self, kept: KeptPlan, asked: Sequence[Asked], context: Context) -> None:
        """Remove what only a retry would need."""
        try:
            kept.forget()
        except OSError as error:
            self.log.warning("The plan stays in the workspace: %s", error)
        settle(asked, self.task_ended(context))

    def _check_parameters(self) -> None:
        """Check what is known while the DAG is parsed, or everything when it is rendered.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        checks: dict[Callable[[], object], tuple[str, ...]] = {
            self._wanted: ("tables",),
            self._excluded: ("exclude",),
            self._catalogs: ("catalog_conn_id", "more_catalogs"),
            self._statements: (
                *("actions", "retain_max", "retain_min", "older_than"),
                *("orphans_older_than", "max_bytes"),
            ),
            self._most_at_once: ("max_parallel", "max_seconds"),
            self._require_policy: ("on_failure",),
            self._require_approved: ("plan", "dry_run"),
        }
        for check, names in checks.items():
            if not has_template([getattr(self, name) for name in names]):
                check()

    def _wanted(self) -> list[Pattern]:
        return patterns("tables", EVERYTHING if self.tables is None else self.tables)

    def _excluded(self) -> list[Pattern]:
        return patterns("exclude", self.exclude or ())

    def _catalogs(self) -> list[str]:
        if isinstance(self.more_catalogs, str) or not isinstance(self.more_catalogs, Sequence):
            found = type(self.more_catalogs).__name__
            raise invalid("more_catalogs", f"expected a list of connection ids, found {found}")
        ids = [self.catalog_conn_id, *self.more_catalogs]
        for index, conn_id in enumerate(self.more_catalogs):
            place = f"more_catalogs[{index}]"
            if not isinstance(conn_id, str):
                raise invalid(place, f"expected text, found {type(conn_id).__name__}")
            if ids.index(conn_id) != index + 1:
                raise invalid(place, f"{conn_id!r} is named twice", "Name each catalog once.")
        return ids

    def _hooks(self) -> dict[str, CatalogHook]:
        hooks = {each: catalog_hook_once(each) for each in self._catalogs()}
        specs = [(each, hook.catalog_spec()) for each, hook in hooks.items()]
        for (one, spec), (other, its_spec) in itertools.combinations(specs, 2):
            if spec.is_same_catalog(its_spec):
                problem = f"{other!r} is the catalog of {one!r}"
                raise invalid("more_catalogs", problem, "Name each catalog once.")
        return hooks

    def _statements(self) -> dict[str, Statement]:
        if isinstance(self.actions, str) or not isinstance(self.actions, Sequence):
            raise invalid("actions", f"expected a list, found {type(self.actions).__name__}")
        known: dict[str, Statement] = {
            CompactSpec.kind: CompactSpec(max_bytes=byte_size("max_bytes", self.max_bytes)),
            ExpireSnapshotsSpec.kind: ExpireSnapshotsSpec(
                retain_max=whole_number("retain_max", self.retain_max),
                retain_min=whole_number("retain_min", self.retain_min),
                older_than=limit("older_than", self.older_than),
            ),
            RemoveOrphanFilesSpec.kind: RemoveOrphanFilesSpec(
                _at("orphans_older_than", self.orphans_older_than)
            ),
        }
        for index, action in enumerate(self.actions):
            if action not in tuple(known):  # it may be anything
                raise not_among(f"actions[{index}]", action, known)
        return {name: each for name, each in known.items() if name in self.actions}

    def _most_bytes(self) -> int | None:
        size = byte_size("max_bytes", self.max_bytes)
        return None if size is None else parse_size(size)

    def _most_at_once(self) -> int:
        whole_number("max_seconds", self.max_seconds)
        return whole_number("max_parallel", self.max_parallel) or 1

    def _require_policy(self) -> None:
        if self.on_failure not in _ON_FAILURE:
            raise not_among("on_failure", self.on_failure, _ON_FAILURE)

    def _require_approved(self) -> None:
        if self.plan is None:
            self._is_dry_run()
            return
        steps_in(self.plan, "plan")
        if self._is_dry_run():
            raise invalid("plan", "cannot be combined with dry_run", "Leave one of them out.")

    def _is_dry_run(self) -> bool:
        return flag("dry_run", cast("bool | str", self.dry_run))


def _at(field: str, value: str) -> str:
    return limit(field, value) or ""
