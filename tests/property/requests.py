"""Random statements as requests of the contract, by the builder's way or as SQL text."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Sequence
from pathlib import Path

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec
from spark_jobs.contract.request import (
    CatalogSpec,
    FileSource,
    JobRequest,
    Source,
    SqlSource,
    TableName,
)
from spark_jobs.contract.statements import (
    Action,
    Assignment,
    DeleteAction,
    DeleteSpec,
    InsertAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    Statement,
    UpdateAction,
    UpdateAllAction,
    UpdateSpec,
)
from tests.oracle import merge as oracle
from tests.oracle import statements as oracle_statements
from tests.oracle.dialects import Spark
from tests.oracle.expressions import Expression
from tests.property.cases import Step
from tests.property.sql import SOURCE, rows_query, to_sql

_NEW_ROWS = "rows_to_insert"


def request_of(
    step: Step,
    warehouse: Path,
    target: TableName,
    source: Path,
) -> JobRequest:
    """The request that runs ``step``, whose source lies in the parquet file ``source``."""
    statement, sources = _built(step) if step.form == "builder" else _parsed(step, target)
    return JobRequest(
        operation_id=str(uuid.uuid4()),
        target=target,
        catalog=CatalogSpec("paimon", str(warehouse)),
        statement=statement,
        sources=(FileSource(SOURCE, str(source), "parquet"), *sources),
    )


def _parsed(step: Step, target: TableName) -> tuple[Statement, tuple[Source, ...]]:
    parsed = parse_statement(to_sql(step, target), [SOURCE], target.database)
    assert parsed.target == target
    statement = parsed.statement
    if isinstance(statement, MergeSpec):
        assert isinstance(step.statement, oracle.Merge)
        return dataclasses.replace(statement, cardinality=step.statement.cardinality), ()
    if isinstance(statement, InsertOverwriteSpec):
        assert isinstance(step.statement, oracle_statements.InsertRows)
        dynamic = step.statement.mode == "dynamic"
        mode = "dynamic" if dynamic else statement.mode
        allow_empty = step.statement.allow_empty
        statement = dataclasses.replace(statement, mode=mode, allow_empty=allow_empty)
    return statement, parsed.sources


def _built(step: Step) -> tuple[Statement, tuple[Source, ...]]:
    """The statement in the words of the contract, and what it reads beside the source."""
    dialect = Spark(*step.aliases, shout=step.shout, source_name=SOURCE)
    statement = step.statement
    match statement:
        case oracle.Merge():
            return _merge(step, statement, dialect), ()
        case oracle_statements.DeleteFrom(where):
            return DeleteSpec(step.aliases[0], where and where.to_sql(dialect)), ()
        case oracle_statements.UpdateTable(assignments, where):
            assigned = _assignments(assignments, dialect)
            return UpdateSpec(step.aliases[0], assigned, where and where.to_sql(dialect)), ()
        case oracle_statements.InsertRows():
            source = SqlSource(_NEW_ROWS, rows_query(statement, dialect))
            return _insert(statement, dialect), (source,)
    raise AssertionError(statement)


def _merge(step: Step, merge: oracle.Merge, dialect: Spark) -> MergeSpec:
    cases = [
        MergeCase(
            clause.when,
            _action(clause.action, dialect),
            clause.condition.to_sql(dialect) if clause.condition else None,
        )
        for clause in merge.clauses
    ]
    return MergeSpec(
        source=SOURCE,
        on=merge.on.to_sql(dialect),
        cases=tuple(cases),
        target_alias=step.aliases[0],
        source_alias=step.aliases[1],
        cardinality=merge.cardinality,
    )


def _insert(statement: oracle_statements.InsertRows, dialect: Spark) -> Statement:
    partition = {}
    if statement.spec is not None and statement.key is not None:
        partition = {dialect.name(statement.key): statement.spec.to_sql(dialect)}
    columns = tuple(map(dialect.name, statement.insert.columns))
    if statement.mode == "append":
        return InsertIntoSpec(_NEW_ROWS, partition, columns)
    return InsertOverwriteSpec(
        _NEW_ROWS, statement.mode, partition, columns, allow_empty=statement.allow_empty
    )


def _action(action: oracle.Action, dialect: Spark) -> Action:
    match action:
        case oracle.Delete():
            return DeleteAction()
        case oracle.Update(assignments):
            return UpdateAction(_assignments(assignments, dialect))
        case oracle.UpdateAll():
            return UpdateAllAction()
        case oracle.Insert(values, columns):
            return InsertAction(
                tuple(value.to_sql(dialect) for value in values),
                tuple(dialect.name(column) for column in columns),
            )
        case oracle.InsertAll():
            return InsertAllAction()
    raise AssertionError(action)


def _assignments(
    assignments: Sequence[tuple[str, Expression]], dialect: Spark
) -> tuple[Assignment, ...]:
    return tuple(Assignment(dialect.name(n), e.to_sql(dialect)) for n, e in assignments)
