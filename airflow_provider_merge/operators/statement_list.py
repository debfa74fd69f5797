"""The statements of a list, as plain dicts, and the operators that build their requests.

::

    statements=[
        merge_into("orders", target="shop.orders", source=…, on=…, when=[…]),
        insert_overwrite("daily", sql="sql/daily.sql", mode="dynamic"),
        "sql/cleanup.sql",
    ]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, Final

from airflow.sdk import DAG
from airflow.sdk.definitions._internal.setup_teardown import SetupTeardownContext

from airflow_provider_merge.exceptions import invalid, no_text
from airflow_provider_merge.operators._shared.drop_table import DropTableStatement
from airflow_provider_merge.operators._shared.dry_run_of import DRY_RUN_OF, DryRunOperator
from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator
from airflow_provider_merge.operators._shared.sql_parameter import (
    names_sql_file,
    of_parameter,
)
from airflow_provider_merge.operators._shared.statement import StatementOperator
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators.alter_table import AlterTableOperator
from airflow_provider_merge.operators.branches import (
    CherryPickOperator,
    CreateBranchOperator,
    DeleteBranchOperator,
    FastForwardOperator,
)
from airflow_provider_merge.operators.compact import CompactOperator
from airflow_provider_merge.operators.create_table import CreateTableOperator
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.expire_snapshots import ExpireSnapshotsOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.remove_orphan_files import RemoveOrphanFilesOperator
from airflow_provider_merge.operators.rollback import (
    RollbackOperator,
    SetCurrentSnapshotOperator,
)
from airflow_provider_merge.operators.tags import CreateTagOperator, DeleteTagOperator
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from airflow_provider_merge.operators.update import UpdateOperator
from airflow_provider_merge.sql.parser import parse_statement
from airflow_provider_merge.task_errors import without_task
from airflow_provider_merge.templates import (
    PLACEHOLDER,
    is_resolved_later,
    is_template,
    with_words,
)
from spark_jobs.contract.checks import not_among
from spark_jobs.errors import JobError

ListedStatement = dict[str, Any]

_OPERATORS: Final[Mapping[str, type[TableOperator]]] = {
    "merge_into": MergeIntoOperator,
    "update": UpdateOperator,
    "delete_from": DeleteFromOperator,
    "insert_into": InsertIntoOperator,
    "insert_overwrite": InsertOverwriteOperator,
    "truncate_table": TruncateTableOperator,
    "drop_partitions": DropPartitionsOperator,
    "create_table": CreateTableOperator,
    "alter_table": AlterTableOperator,
    "drop_table": DropTableStatement,
    "compact": CompactOperator,
    "expire_snapshots": ExpireSnapshotsOperator,
    "remove_orphan_files": RemoveOrphanFilesOperator,
    "create_tag": CreateTagOperator,
    "delete_tag": DeleteTagOperator,
    "rollback": RollbackOperator,
    "set_current_snapshot": SetCurrentSnapshotOperator,
    "create_branch": CreateBranchOperator,
    "delete_branch": DeleteBranchOperator,
    "fast_forward": FastForwardOperator,
    "cherry_pick": CherryPickOperator,
}
_ANY_TEXT: Final = "sql"
_NAME = re.compile(r"[\w.-]{1,100}")
_TASK: Final = "statement"
# Between the words of a class's name.
_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Not parameters of a statement, but of the task that runs all of them.
_OF_THE_TASK = {*SparkJobOperator.template_fields, "dry_run", DRY_RUN_OF, "after_ended_try"}


def merge_into(name: str, **parameters: Any) -> ListedStatement:
    """A MERGE, with the statement parameters of ``MergeIntoOperator``."""
    return _listed(name, "merge_into", parameters)


def update(name: str, **parameters: Any) -> ListedStatement:
    """An UPDATE, with the statement parameters of ``UpdateOperator``."""
    return _listed(name, "update", parameters)


def delete_from(name: str, **parameters: Any) -> ListedStatement:
    """A DELETE, with the statement parameters of ``DeleteFromOperator``."""
    return _listed(name, "delete_from", parameters)


def insert_into(name: str, **parameters: Any) -> ListedStatement:
    """An INSERT INTO, with the statement parameters of ``InsertIntoOperator``."""
    return _listed(name, "insert_into", parameters)


def insert_overwrite(name: str, **parameters: Any) -> ListedStatement:
    """An INSERT OVERWRITE, with the statement parameters of ``InsertOverwriteOperator``."""
    return _listed(name, "insert_overwrite", parameters)


def truncate_table(name: str, **parameters: Any) -> ListedStatement:
    """A TRUNCATE TABLE, with the statement parameters of ``TruncateTableOperator``."""
    return _listed(name, "truncate_table", parameters)


def drop_partitions(name: str, **parameters: Any) -> ListedStatement:
    """A DROP PARTITION, with the statement parameters of ``DropPartitionsOperator``."""
    return _listed(name, "drop_partitions", parameters)


def create_table(name: str, **parameters: Any) -> ListedStatement:
    """A CREATE TABLE, with the statement parameters of ``CreateTableOperator``."""
    return _listed(name, "create_table", parameters)


def alter_table(name: str, **parameters: Any) -> ListedStatement:
    """An ALTER TABLE, with the statement parameters of ``AlterTableOperator``."""
    return _listed(name, "alter_table", parameters)


def drop_table(
    name: str, target: str, *, if_exists: bool = False, purge: bool = False
) -> ListedStatement:
    """A DROP TABLE, which the task has to allow: ``allow_drop=True``."""
    return _listed(name, "drop_table", {"target": target, "if_exists": if_exists, "purge": purge})


def sql_statement(name: str, sql: str, **parameters: Any) -> ListedStatement:
    """A statement of any kind, as SQL text or the path of a ``.sql`` file."""
    return _listed(name, _ANY_TEXT, {"sql": sql, **parameters})


def statement_parameters() -> frozenset[str]:
    """The names of all parameters of statements in a list."""
    names = {name for kind in _OPERATORS.values() for name in kind.template_fields}
    return frozenset(names - _OF_THE_TASK)


def default_parameters() -> frozenset[str]:
    """Those of which ``default_args`` may have a value: one text is not that of all statements."""
    return statement_parameters() - {"sql"}


def require_of_task(parameters: Iterable[str], known: Iterable[str]) -> None:
    """Check that a task of statements is given no parameter of one of them.

    Raises:
        RequestError: REQUEST_INVALID, naming the parameter.
    """
    for name in parameters:
        if name in statement_parameters().difference(known):
            raise invalid(
                name,
                "belongs to a statement",
                f"Give it to one of the list: sql_statement('orders', 'sql/orders.sql', {name}=...)"
                "; those that default_args has belong to all statements which know them.",
            )


def listed_statement(statement: Any, index: int) -> ListedStatement:
    """One item of a list: a dict as it is; the path of a ``.sql`` file by the name of the file.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    place = f"statements[{index}]"
    if isinstance(statement, str):
        if not names_sql_file(statement):
            raise invalid(place, "is text without a name", "Write sql_statement(name, text).")
        statement = sql_statement(PurePosixPath(statement).stem, statement)
    if not isinstance(statement, Mapping):
        raise invalid(place, f"expected a statement, found {type(statement).__name__}")
    name, operation = statement.get("name"), statement.get("operation")
    if not is_template(name) and not (isinstance(name, str) and _NAME.fullmatch(name)):
        problem = f"{name!r} is not a name of letters, digits, _, . and -"
        raise invalid(f"{place}.name", problem, "Write a name such as daily-orders.")
    if is_resolved_later(operation):
        problem = "cannot be the result of a task"
        raise invalid(f"{place}.operation", problem, "Write it in the DAG file.")
    if operation not in (*_OPERATORS, _ANY_TEXT):
        raise not_among(f"{place}.operation", operation, (*_OPERATORS, _ANY_TEXT))
    return dict(statement)


def as_dicts(statements: Any) -> Any:
    """The statements of a list that are known, as dicts."""
    if not isinstance(statements, list | tuple):
        return statements
    return [
        each if is_template(each) and not names_sql_file(each) else listed_statement(each, at)
        for at, each in enumerate(statements)
    ]


def operator_of(
    statement: ListedStatement,
    *,
    file: str,
    is_written: bool,
    after_ended_try: str,
    dry_run: bool,
    **of_the_task: Any,
) -> TableOperator | None:
    """The operator that knows what the statement means; it belongs to no DAG of anybody.

    None: only while the DAG is parsed, a template has to be rendered first to know its kind.
    ``file``: where its text stands, if it is a file. ``is_written``: in the DAG file, not by
    another task. ``of_the_task``: what all operators take, such as ``catalog_conn_id``, and
    ``default_args``.

    Raises:
        JobError: naming the statement and its parameter.
    """
    parameters = {k: _later(v) for k, v in statement.items() if k not in ("name", "operation")}
    with of_statement(statement["name"], file):
        defaults = _later(of_the_task.get("default_args", {}))
        kind = _operator_class(statement["operation"], {**defaults, **parameters})
        if kind is None:
            return None
        _require_known(kind, parameters)
        if issubclass(kind, StatementOperator):
            parameters["after_ended_try"] = _later(after_ended_try)
        if issubclass(kind, DryRunOperator):
            parameters["dry_run"] = dry_run
        elif dry_run:
            told = kind.__name__.removesuffix("Operator").removesuffix("Statement")
            raise invalid("dry_run", f"{_WORDS.sub(' ', told).upper()} has no dry run")
        try:
            with _outside_of_dags() as dag:
                operator = kind(
                    task_id=_TASK,
                    dag=dag,
                    task_group=dag.task_group,
                    **{name: _later(value) for name, value in of_the_task.items()},
                    **parameters,
                )
            if not is_written:
                operator.require_selection("is missing in a statement that another task returned")
        except TypeError as error:
            raise invalid(kind.__name__, str(error)) from None
    operator.sql_file = file
    return operator


def _listed(name: str, operation: str, parameters: Mapping[str, Any]) -> ListedStatement:
    return {"name": name, "operation": operation, **parameters}


def _operator_class(operation: str, parameters: Mapping[str, Any]) -> type[TableOperator] | None:
    if operation != _ANY_TEXT:
        return _OPERATORS[operation]
    sql, sources, database = (parameters.get(each) for each in ("sql", "sources", "database"))
    if not isinstance(sql, str):
        if is_template(sql):
            return None
        raise no_text("sql", sql)
    if names_sql_file(sql) or is_template(sources):
        return None
    if is_template(sql) or is_template(database):
        return _readable_class(sql, sources)
    with of_parameter("sql"):
        statement_class = type(parse_statement(sql, tuple(sources or ()), database).statement)
    kind = _class_of(statement_class)
    if kind is None:
        raise invalid("sql", f"{statement_class.kind} is not supported in a list of statements")
    return kind


def _readable_class(sql: str, sources: Any) -> type[TableOperator] | None:
    """That of a text with templates, if it is known whatever they become."""
    text = with_words(sql)
    try:
        parsed = parse_statement(text or "", tuple(sources or ()), PLACEHOLDER)
    except JobError:
        return None  # the rendered text decides
    return _class_of(type(parsed.statement))


def _class_of(found: type) -> type[TableOperator] | None:
    for kind in _OPERATORS.values():
        if issubclass(kind, StatementOperator) and kind.spec_type is found:
            return kind
    return None


def _require_known(kind: type[TableOperator], parameters: Mapping[str, Any]) -> None:
    known = set(kind.template_fields) - _OF_THE_TASK
    for name in parameters:
        if name in _OF_THE_TASK:
            raise invalid(name, "belongs to the task", "Give it to StatementsOperator.")
        if name not in known:
            raise invalid(name, f"is not a parameter of {kind.__name__}")


class _Later:
    """What is known when the task runs: the operator of a statement depends on no other task."""

    def resolve(self, context: Any) -> Any:
        """Airflow's mark of such values; it resolves those of the list instead."""
        raise NotImplementedError


def _later(value: Any) -> Any:
    """A parameter with a mark for each part that Airflow resolves before the task runs."""
    if isinstance(value, dict):
        return {name: _later(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_later(each) for each in value]
    return _Later() if not isinstance(value, str) and is_template(value) else value


@contextmanager
def _outside_of_dags() -> Iterator[DAG]:
    """A DAG of its own for an operator that is no task of the DAG that is being written."""
    active = SetupTeardownContext.active
    SetupTeardownContext.active = False
    try:
        yield DAG(_TASK, schedule=None, auto_register=False)
    finally:
        SetupTeardownContext.active = active


@contextmanager
def of_statement(name: str, file: str) -> Iterator[None]:
    """Errors name the statement and its file, not the operator of one statement as a task."""
    place = f"statement {name!r} ({file})" if file else f"statement {name!r}"
    try:
        yield
    except JobError as error:
        raise error.at(place, *without_task(error, _TASK)) from None
