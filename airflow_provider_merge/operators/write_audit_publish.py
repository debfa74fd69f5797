"""``WriteAuditPublish``: statements on a branch, checks of it, then publication, or none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from airflow.sdk import TaskGroup

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._groups.branch_tasks import (
    BranchQueryOperator,
    BranchStatementsOperator,
    PublishOperator,
)
from airflow_provider_merge.operators._shared.sql_parameter import names_sql_file, of_parameter
from airflow_provider_merge.operators.branches import (
    CreateBranchOperator,
    DeleteBranchOperator,
    FastForwardOperator,
)
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.statement_list import (
    ListedStatement,
    listed_statement,
    require_of_task,
)
from airflow_provider_merge.sql.parser import ParsedStatement, parse_statement
from airflow_provider_merge.table_names import parse_table_name
from airflow_provider_merge.task_errors import naming_task, place_of_task
from airflow_provider_merge.templates import (
    PLACEHOLDER,
    has_template,
    is_known_name,
    is_template,
    with_words,
)
from spark_jobs.contract.checks import not_among, unknown_field
from spark_jobs.contract.request import TableName
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import created_table
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.errors import JobError

Check = str | Mapping[str, Any]
_OPERATIONS: Final = (
    "merge_into",
    "update",
    "delete_from",
    "insert_into",
    "insert_overwrite",
    "truncate_table",
    "drop_partitions",
    "sql",
)
_ON_FAILURE: Final = ("keep", "delete")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")
# What only the statements take.
_OF_STATEMENTS: Final = ("max_parallel",)
# What a check may say of its query.
_OF_CHECKS: Final = ("sql", "check", "sources", "database", "limit", "session_time_zone")


class WriteAuditPublish(TaskGroup):
    """Tasks that change tables on a branch, check the branch, and publish it if all is well.

    ``delete_old_branch`` and ``create_branch`` begin anew, ``write`` runs the statements on the
    branch, a task for each check reads the branch, ``publish`` gives the table what the branch has
    and sends the asset event, ``delete_branch`` ends the branch. Of several tables, each has a task
    of its own of these. Guide: docs/operators/branches.md.

    :param group_id: the group's name
    :param statements: as ``statements`` of ``StatementsOperator``, those that change rows
    :param checks: queries that must return no row, as a list, or by name; or parameters of
        ``QueryOperator`` such as ``{"sql": …, "check": "all_true"}``. They name the tables without
        the branch
    :param targets: the tables that the statements change; default: those that the statements name
    :param branch: the name of the branch; default: one of this run alone
    :param on_failure: ``keep`` (default): a branch that is not published stays until the group runs
        again in this run; ``delete``: it is deleted
    :param parameters: of all tasks, such as ``catalog_conn_id``, ``conf`` and ``retries``;
        ``max_parallel`` is that of the statements
    """

    def __init__(
        self,
        group_id: str = "write_audit_publish",
        *,
        statements: Sequence[ListedStatement | str],
        checks: Mapping[str, Check] | Sequence[Check],
        targets: Sequence[str] | None = None,
        branch: str = "{{ run_branch() }}",
        on_failure: str = "keep",
        tooltip: str = "",
        default_args: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> None:
        of_group: Any = dict(default_args or {})
        super().__init__(group_id, tooltip=tooltip, default_args=of_group)
        with naming_task(group_id):
            if is_template(on_failure) or on_failure not in _ON_FAILURE:
                raise not_among("on_failure", on_failure, _ON_FAILURE)
            for name in ("trigger_rule", "dry_run"):
                if name in parameters:
                    problem = "is not for the tasks of the group, which belong together"
                    raise invalid(name, problem, "Give it to a task in front of the group.")
            _require_branch(branch)
            require_of_task(parameters, (*_OF_STATEMENTS, *QueryOperator.template_fields))
            named = _checks(checks)
            tables = _targets(statements, targets)
        common = {name: each for name, each in parameters.items() if name not in _OF_STATEMENTS}
        # Nothing is published behind a check that failed, whatever default_args say.
        common["trigger_rule"] = "all_success"
        own = {name: each for name, each in parameters.items() if name in _OF_STATEMENTS}
        with self, _naming_group(group_id):
            begun = [_Line(table, branch, len(tables) > 1, common) for table in tables]
            write = BranchStatementsOperator(
                task_id="write",
                statements=statements,
                branch=branch,
                targets=tables,
                dry_run=False,
                **common,
                **own,
            )
            audits = []
            for name, (place, query) in named.items():
                of_check: dict[str, Any] = {"branch": branch, "targets": tables, **query, **common}
                with _naming_check(place):
                    audits.append(BranchQueryOperator(task_id=name, **of_check))
            for line in begun:
                line.create >> write
            write >> audits
            for audit in audits:
                audit >> [each.first for each in begun]
            for line in begun:
                for other in begun:
                    if line.rehearsal is not None:
                        line.rehearsal >> other.publish
                line.end(always=on_failure == "delete")


class _Line:
    """The tasks of one table: its branch begins, is published, and ends."""

    def __init__(
        self, table: str, branch: str, is_one_of_several: bool, common: Mapping[str, Any]
    ) -> None:
        suffix = f"_{_UNSAFE.sub('_', table)}" if is_one_of_several else ""
        of_table: dict[str, Any] = {"target": table, **common}
        self.old = DeleteBranchOperator(
            task_id=f"delete_old_branch{suffix}",
            branch=branch,
            if_exists=True,
            dry_run=False,
            **of_table,
        )
        self.create = CreateBranchOperator(
            task_id=f"create_branch{suffix}", branch=branch, **of_table
        )
        # Where one table cannot be published, no other one is.
        self.rehearsal = None
        if is_one_of_several:
            self.rehearsal = FastForwardOperator(
                task_id=f"may_publish{suffix}", to=branch, dry_run=True, **of_table
            )
        self.publish = PublishOperator(
            task_id=f"publish{suffix}", to=branch, dry_run=False, **of_table
        )
        self.delete = DeleteBranchOperator(
            task_id=f"delete_branch{suffix}",
            branch=branch,
            if_exists=True,
            dry_run=False,
            **of_table,
        )
        self.old >> self.create

    @property
    def first(self) -> FastForwardOperator:
        """The first task behind the checks."""
        return self.publish if self.rehearsal is None else self.rehearsal

    def end(self, *, always: bool) -> None:
        """Delete the branch once it is published; ``always``: also if it is not."""
        self.publish >> self.delete
        if always:
            self.delete.as_teardown(setups=[self.create])


@contextmanager
def _naming_group(group_id: str) -> Iterator[None]:
    """Errors of the tasks inside name the group, which is what people wrote."""
    try:
        yield
    except JobError as error:
        raise error.at(place_of_task(group_id), *error.places[1:]) from None


@contextmanager
def _naming_check(place: str) -> Iterator[None]:
    """Errors of the task of a check name the check."""
    try:
        yield
    except JobError as error:
        raise error.at(*error.places[:1], place, *error.places[1:]) from None


def _require_branch(branch: Any) -> None:
    if is_template(branch):
        return
    if not isinstance(branch, str) or not branch.strip():
        raise invalid("branch", "is not a name", "Write a name, or leave branch out.")
    if branch == MAIN_BRANCH:
        raise invalid("branch", f"{MAIN_BRANCH} is the branch that every table has")


def _checks(checks: Any) -> dict[str, tuple[str, dict[str, Any]]]:
    """The place and the parameters of each query, by the ids of tasks."""
    if isinstance(checks, Mapping):
        pairs = [(str(name), each) for name, each in checks.items()]
    elif isinstance(checks, list | tuple):
        pairs = [(str(number), each) for number, each in enumerate(checks, 1)]
    else:
        problem = f"expected a list or a dict of queries, found {type(checks).__name__}"
        raise invalid("checks", problem, "Write the DAG's checks in the DAG file.")
    if not pairs:
        raise invalid("checks", "there is none", "Without a check, use StatementsOperator.")
    return {
        f"check_{_UNSAFE.sub('_', name)}": (f"checks[{name}]", _query(name, each))
        for name, each in pairs
    }


def _query(name: str, check: Any) -> dict[str, Any]:
    place = f"checks[{name}]"
    if isinstance(check, str):
        return {"sql": check, "check": "no_rows"}
    if not isinstance(check, Mapping) or "sql" not in check:
        raise invalid(place, "is neither a query nor a dict with sql", "Write a SELECT.")
    for parameter in check:
        if parameter not in _OF_CHECKS:
            raise unknown_field(f"{place}.{parameter}", parameter, _OF_CHECKS)
    return {"check": "no_rows", **check}


def _targets(statements: Any, targets: Any) -> list[str]:
    """The tables that get a branch.

    Raises:
        RequestError: REQUEST_INVALID: a statement is no change of rows; a table is not known yet.
    """
    if not isinstance(statements, list | tuple) or not statements:
        raise invalid("statements", "expected a list of statements", "Write it in the DAG file.")
    listed = [_changing(each, at) for at, each in enumerate(statements)]
    if targets is not None:
        if not isinstance(targets, list | tuple) or not targets:
            raise invalid("targets", "expected a list of tables", "Write ['db.table'].")
        given = [
            each if is_template(each) else parse_table_name(each, "targets") for each in targets
        ]
    else:
        given = [_target(each, at) for at, each in enumerate(listed)]
    distinct: dict[str, str] = {}
    for target in given:
        if not isinstance(target, TableName):
            distinct.setdefault(target, target)
            continue
        if target.branch != MAIN_BRANCH:
            raise invalid("targets", f"{target} is a branch", "Name the table.")
        parts = (target.catalog, target.database, target.table)
        distinct.setdefault(target.folded, ".".join(quote(part) for part in parts if part))
    return list(distinct.values())


def _changing(statement: Any, at: int) -> Any:
    if is_template(statement):
        return statement
    listed = listed_statement(statement, at)
    if listed["operation"] not in _OPERATIONS:
        raise invalid(
            f"statements[{at}].operation",
            f"{listed['operation']!r} cannot be done on a branch",
            f"Run it in a task before the group; on branches: {', '.join(_OPERATIONS)}.",
        )
    parsed = _parsed(listed)
    if parsed is not None and created_table(parsed.statement) is not None:
        raise invalid(
            f"statement {listed['name']!r}",
            "CREATE TABLE cannot be done on a branch: a table that is not there has none",
            "Make the table in a task before the group, and write INSERT INTO here.",
        )
    return listed


def _target(statement: Any, at: int) -> TableName:
    """The table of a statement whose name is no template."""
    target = None if is_template(statement) else _named(statement)
    if target is None:
        raise invalid(
            "targets",
            f"the table of statements[{at}] is only known when the task runs",
            "Give targets, the list of all tables that the statements change.",
        )
    return target


def _named(statement: Mapping[str, Any]) -> TableName | None:
    target, parsed = statement.get("target"), _parsed(statement)
    if target is not None:
        return None if is_template(target) else parse_table_name(target, "target")
    return parsed.target if parsed is not None and is_known_name(parsed.target) else None


def _parsed(statement: Mapping[str, Any]) -> ParsedStatement | None:
    """The text of a statement, read with words for its templates; None: it cannot be yet.

    Raises:
        JobError: it is wrong, and has no templates that could make it right.
    """
    sql, sources = statement.get("sql"), statement.get("sources")
    text = with_words(sql) if isinstance(sql, str) and not names_sql_file(sql) else None
    if text is None or has_template(sources):
        return None
    database = statement.get("database")
    try:
        with of_parameter("sql"):
            known = PLACEHOLDER if is_template(database) else database
            return parse_statement(text, tuple(sources or ()), known)
    except JobError as error:
        if text != sql or is_template(database):
            return None  # the rendered text decides
        raise error.within(f"statement {statement['name']!r}") from None
