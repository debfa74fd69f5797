"""``StatementsOperator``: several statements in one Spark application, each its own snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast, get_args

from airflow_provider_merge.assets import with_assets
from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.catalog import CatalogHook, catalog_hook
from airflow_provider_merge.links import TABLE_PAGE
from airflow_provider_merge.operators._shared.approval import APPROVED, PLAN
from airflow_provider_merge.operators._shared.asset_events import emit_events
from airflow_provider_merge.operators._shared.batch_outcome import BatchOutcome, batch_outcome
from airflow_provider_merge.operators._shared.compilers_choice import note_for_next
from airflow_provider_merge.operators._shared.dry_run_of import (
    foretelling,
    require_task,
    task_named,
)
from airflow_provider_merge.operators._shared.measured import measuring
from airflow_provider_merge.operators._shared.misspelt import refuse_misspelt
from airflow_provider_merge.operators._shared.operation_id import task_operation_id
from airflow_provider_merge.operators._shared.outcome import settle_task
from airflow_provider_merge.operators._shared.pages import pages_of_result
from airflow_provider_merge.operators._shared.results import result_table, xcom_value
from airflow_provider_merge.operators._shared.sql_parameter import (
    names_sql_file,
    of_parameter,
    sql_of_file,
)
from airflow_provider_merge.operators._shared.sql_scripts import SqlScriptsOperator
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators._shared.timeouts import telling_timeouts
from airflow_provider_merge.operators._shared.values import flag, whole_number
from airflow_provider_merge.operators.statement_list import (
    ListedStatement,
    as_dicts,
    default_parameters,
    listed_statement,
    of_statement,
    operator_of,
    require_of_task,
)
from airflow_provider_merge.submit.surroundings import shares_local_files
from airflow_provider_merge.table_pages import page_before, page_of_result
from airflow_provider_merge.task_errors import naming_task, task_failure, task_place
from airflow_provider_merge.templates import is_known_name, is_template, when_rendered
from spark_jobs.contract.batch import JobBatch, OnFailure
from spark_jobs.contract.checks import not_among
from spark_jobs.contract.request import AfterEndedTry, JobRequest
from spark_jobs.contract.statements import redefines
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context


class StatementsOperator(SqlScriptsOperator):
    """Runs statements, a list or files of them, on one catalog in one Spark application.

    The statements run in order. Each publishes a snapshot of its own, with its own operation id: a
    retry does not repeat what is committed. All statements are checked before the first one runs.
    Guide: docs/operators/statements.md.

    :param statements: ``merge_into(name, …)``, ``insert_overwrite(name, …)`` and other functions of
        ``operators.statement_list``, or the same as dicts; or paths of ``.sql`` files
    :param sql: instead of a list: several statements as text, separated by semicolons, or the path
        of a ``.sql`` file of them; or a list of such
    :param sources: name → source; ``sql`` uses the names like tables
    :param database: the database of tables that ``sql`` names without a database
    :param allow_drop: true: statements may drop tables
    :param max_parallel: how many statements run concurrently, if they do not depend on each other
    :param on_failure: whether statements after a failed one run: ``stop`` (default), no;
        ``continue``, yes. The task fails either way, and the error names each failed statement
    :param dry_run: true: report what each statement would change, and commit nothing
    :param dry_run_of: of a dry run: the task that it foretells, by whose marks it goes
    :param after_ended_try: if an earlier try committed the statement, but its task was ended, or
        failed at another statement and was cleared: ``skip`` (default) takes that commit as the
        result, ``fail`` fails with the details, ``run`` runs the statement once more
    :param catalog_conn_id: connection to the catalog, for example of the type ``paimon``
    :param spark_conn_id: connection of the type ``spark``; must exist
    :param spark_env: folder of the Python environment with pyspark; default: ``spark-env`` in the
        Spark connection's extra, then ``[merge] spark_env`` in Airflow's configuration
    :param conf: Spark configuration; never put a secret there
    :param driver_memory: as for spark-submit; so are the parameters that follow
    """

    template_fields: Sequence[str] = (
        *SqlScriptsOperator.template_fields,
        "statements",
        "statement_defaults",
        "max_parallel",
        "on_failure",
        "dry_run",
        "dry_run_of",
        "after_ended_try",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **SqlScriptsOperator.template_fields_renderers,
        "statements": "json",
    }
    rendered_like: ClassVar[Mapping[str, str]] = {"statement_defaults": "default_args"}
    nested_documents: ClassVar[frozenset[str]] = frozenset({APPROVED})

    def __init__(
        self,
        *,
        statements: Sequence[ListedStatement | str] | None = None,
        max_parallel: int | str = 1,
        on_failure: str = "stop",
        dry_run: bool | str = False,
        dry_run_of: Any = None,
        after_ended_try: str = "skip",
        **kwargs: Any,
    ) -> None:
        require_of_task(kwargs, self.template_fields)
        refuse_misspelt(kwargs.get("default_args"), default_parameters())
        super().__init__(**kwargs)
        # Those of the DAG, its task groups and the task that belong to statements.
        self.statement_defaults = {
            name: value
            for name, value in (kwargs.get("default_args") or {}).items()
            if name in default_parameters()
        }
        self.statements: Any = as_dicts(statements)
        # The places of those that other tasks return.
        self._returned: set[int] | None = set()
        self.max_parallel = max_parallel
        self.on_failure = on_failure
        # Takes the place of BaseOperator.dry_run(), which Airflow 3 never calls.
        self.dry_run = dry_run  # type: ignore[method-assign,assignment]
        self.dry_run_of = task_named(dry_run_of)
        self.after_ended_try = after_ended_try
        self._outcome: BatchOutcome | None = None
        # By the places of statements.
        self._files: dict[int, str] = {}
        self._check_parameters()

    def resolve_template_files(self) -> None:
        """Read the files of statements, as Airflow reads those of single parameters."""
        with naming_task(self.task_id):
            self._read_files()
            super().resolve_template_files()
            require_task(self, self.dry_run_of)

    def before_rendering(self, resolved: Collection[str]) -> None:
        """Read the files of a mapped task, and note which statements are not of the DAG file."""
        super().before_rendering(resolved)
        if "statements" in resolved or not isinstance(self.statements, list):
            self._returned = None
        else:
            # What the DAG file gives to a mapped group is a list only now.
            self.statements = as_dicts(self.statements)
            self._read_files()
            later = {at for at, each in enumerate(self.statements) if is_template(each)}
            self._returned = later

    def after_rendering(self) -> None:
        """Take the items of lists that tasks returned; a dry run writes nothing, whatever comes."""
        super().after_rendering()
        if isinstance(self.statements, list):
            self._take_items_of_lists()
        if self._is_dry_run():
            self.outlets = []

    def _take_items_of_lists(self) -> None:
        """Each mapped task, or each of several, may have returned a list."""
        statements: list[Any] = []
        origins: list[int] = []
        for at, each in enumerate(self.statements):
            items = each if isinstance(each, list) and each else [each]
            statements += items
            origins += [at] * len(items)
        self.statements = statements
        if self._returned is not None:
            self._returned = {at for at, each in enumerate(origins) if each in self._returned}
        self._files = {
            at: self._files[each] for at, each in enumerate(origins) if each in self._files
        }

    def prepare_template(self) -> None:
        """Check the texts that Airflow has read from files, when the DAG is parsed."""
        self._check_parameters()

    @when_rendered
    @measuring
    @telling_timeouts
    def execute(self, context: Context) -> dict[str, Any]:
        """Run the statements; ``statements`` in the result has the result of each, by name.

        A retry finds what an earlier try committed.
        """
        try:
            hook = catalog_hook(self.catalog_conn_id)
            if self.sql is not None:
                self.check_sql()
                self.require_used_catalogs(hook)
            operators = self._known_operators()
            requests: Mapping[str, JobRequest] = {
                name: operator.job_request(context, hook, name)
                for name, operator in operators.items()
            }
            requests = foretelling(self, requests, dry_run=self._is_dry_run())
            self.measured.expect(*requests.values())
            first = next(iter(requests.values()))
            self.pages[TABLE_PAGE] = page_before(self.catalog_conn_id, first.table)
            self._require_valid(operators, requests, hook)
            ended = self.submit(self._batch(context, requests), hook, context)
            places = {name: operator.sql_file for name, operator in operators.items()}
            failure = ended.failure
            outcome = batch_outcome(requests, hook, failure, places, self.measured.left)
        except JobError as error:
            raise task_failure(error, context) from None
        self._outcome = outcome
        note_for_next(context, ended.had_both_compilers, outcome.results.values())
        for name, result in outcome.results.items():
            page = page_of_result(self.catalog_conn_id, requests[name], result)
            self.pages[TABLE_PAGE] = page
        self._tell(outcome, operators, hook)
        outcome.require_all(task_place(context))
        if not self._is_dry_run():
            emit_events(self, context, hook, outcome.changes(operators))
        end = self.task_ended(context)
        for request in requests.values():
            settle_task(request, hook, end)
        return {"statements": {name: xcom_value(each) for name, each in outcome.results.items()}}

    @when_rendered
    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any] | None:
        """Inputs and outputs of all statements for OpenLineage, from rendered parameters."""
        from airflow_provider_merge.lineage.facets import batch_lineage

        return batch_lineage(self._known_operators(), {})

    @when_rendered
    def get_openlineage_facets_on_complete(
        self, task_instance: Any
    ) -> OperatorLineage[Any, Any] | None:
        """The same, with what the results add."""
        from airflow_provider_merge.lineage.facets import batch_lineage

        results = self._outcome.results if self._outcome else {}
        return batch_lineage(self._known_operators(), results)

    def _check_parameters(self) -> None:
        """Check as much as is known while the DAG is parsed.

        Raises:
            JobError: naming the parameter and the statement.
        """
        if not is_template(self.max_parallel):
            self._most_at_once()
        for name, choices in (("on_failure", OnFailure), ("after_ended_try", AfterEndedTry)):
            value = getattr(self, name)
            if not is_template(value) and value not in get_args(choices):
                raise not_among(name, value, get_args(choices))
        self._require_one_way()
        if is_template(self.statements):
            return
        if self.sql is not None:
            self.check_sql()
            for each in self.readable_statements():
                # The rendered text decides what is wrong.
                with suppress(JobError):
                    self._announce([self._operator(_Given(each.listed, each.place))])
        self._announce(self._known_operators().values())

    def _require_one_way(self) -> None:
        if self.statements is None and self.sql is None:
            raise invalid("statements", "missing", "Give a list, or sql.")
        if self.statements is not None:
            for name in ("sql", "sources", "database"):
                if getattr(self, name) is not None:
                    why = "cannot be combined with statements"
                    self.refuse(name, why, "Leave one of them out.")

    def _announce(self, operators: Iterable[TableOperator | None]) -> None:
        """Make what statements read and change inlets and outlets, if its names are known."""
        for operator in filter(None, operators):
            inlets = [each for each in operator.inlets if is_known_name(each)]
            self.inlets = with_assets(self.inlets, inlets)
            outlets = [each for each in operator.outlets if is_known_name(each)]
            self.outlets = with_assets(self.outlets, outlets)

    def _known_operators(self) -> Mapping[str, TableOperator]:
        """By the names of the statements; while the DAG is parsed, as far as they are known."""
        return self._operators(self._known_statements())

    def _known_statements(self) -> list[_Given]:
        if self.sql is not None:
            return [_Given(each.listed, each.place) for each in self.file_statements()]
        if not isinstance(self.statements, list) or not self.statements:
            given = "none" if self.statements == [] else type(self.statements).__name__
            raise invalid("statements", f"expected a list of statements, found {given}")
        # While the DAG is parsed, some may be results of other tasks.
        return [
            _Given(
                listed_statement(statement, at),
                self._files.get(at, ""),
                self._returned is not None and at not in self._returned,
            )
            for at, statement in enumerate(self.statements)
            if not is_template(statement)
        ]

    def _operators(self, statements: Sequence[_Given]) -> Mapping[str, TableOperator]:
        listed = [each.listed for each in statements]
        names = [each["name"] for each in listed if not is_template(each["name"])]
        for name in names:
            if names.count(name) > 1:
                raise invalid("statements", f"two statements are called {name!r}")
        found = [self._operator(each) for each in statements]
        # While the DAG is parsed, a name may be the result of another task, too.
        named = zip((str(each["name"]) for each in listed), found, strict=True)
        known = {name: operator for name, operator in named if operator is not None}
        self.require_allowed(known)
        return known

    def _operator(self, statement: _Given) -> TableOperator | None:
        # A template may be true or false: whether the statement has a dry run is seen later.
        dry_run = not is_template(self.dry_run) and self._is_dry_run()
        return operator_of(
            statement.listed,
            file=statement.file,
            is_written=statement.is_written,
            catalog_conn_id=self.catalog_conn_id,
            after_ended_try=self.after_ended_try,
            dry_run=dry_run,
            default_args=self.statement_defaults,
            retries=self.retries or 0,
        )

    def _require_valid(
        self,
        operators: Mapping[str, TableOperator],
        requests: Mapping[str, JobRequest],
        hook: CatalogHook,
    ) -> None:
        """Check what metadata tells; statements of the list may create or alter tables."""
        made = [e.table for e in requests.values() if redefines(e.statement)]
        check = MetadataCheck(hook, shares_local_files(self.spark_settings()), made)
        for name, operator in operators.items():
            with of_statement(name, operator.sql_file):
                operator.require_valid(requests[name], check)

    def _batch(self, context: Context, requests: Mapping[str, JobRequest]) -> JobBatch:
        return JobBatch(
            operation_id=task_operation_id(context, dry_run=self._is_dry_run()),
            requests=tuple(requests.values()),
            max_parallel=self._most_at_once(),
            on_failure=cast("OnFailure", self.on_failure),
        )

    def _tell(
        self, outcome: BatchOutcome, operators: Mapping[str, TableOperator], hook: CatalogHook
    ) -> None:
        """Log each result; the links lead to the pages of the last one that has any."""
        for name, result in outcome.results.items():
            for warning in result.warnings:
                self.log.warning("%s: %s", name, warning)
            self.log.info("%s: %s", name, result_table(result))
            pages = pages_of_result(hook, operators[name].target_table(), result)
            self.pages |= pages
            for page in filter(None, pages.values()):
                self.log.info("%s: %s", name, page)

    def _read_files(self) -> None:
        if isinstance(self.statements, list):
            self.statements = [self._with_text(*each) for each in enumerate(self.statements)]

    def _with_text(self, at: int, statement: ListedStatement) -> ListedStatement:
        # While the DAG is parsed, a statement may be the result of another task.
        path = None if is_template(statement) else statement.get("sql")
        if not names_sql_file(path) or at in self._files:
            return statement
        self._files[at] = path
        with of_parameter(f"statement {statement['name']!r}"):
            return {**statement, "sql": sql_of_file(path, self.get_template_env())}

    def _most_at_once(self) -> int:
        return whole_number("max_parallel", self.max_parallel) or 1

    def _is_dry_run(self) -> bool:
        value = cast("bool | str", self.dry_run)
        if str(value).strip().lower() == PLAN:
            problem = f"{value!r} is for the operator of one statement"
            raise invalid("dry_run", problem, "Write True, or plan each statement in its own task.")
        return flag("dry_run", value)


class _Given(NamedTuple):
    """A statement, where it stands if that is a file, and whether the DAG file has it."""

    listed: ListedStatement
    file: str = ""
    is_written: bool = True
