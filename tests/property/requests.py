"""Random statements as requests of the contract, by the builder's way or as SQL text."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Sequence
from pathlib import Path

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest, TableName
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
from tests.property.sql import SOURCE, to_sql


def request_of(step: Step, warehouse: Path, target: TableName, source: Path) -> JobRequest:
    """The request that runs ``step``, whose source lies in the parquet file ``source``."""
    return JobRequest(
        operation_id=str(uuid.uuid4()),
        target=target,
        catalog=CatalogSpec("paimon", str(warehouse)),
        statement=_built(step) if step.form == "builder" else _parsed(step, target),
        sources=(FileSource(SOURCE, str(source), "parquet"),),
    )


def _parsed(step: Step, target: TableName) -> Statement:
    parsed = parse_statement(to_sql(step, target), [SOURCE], target.database)
    assert parsed.target == target
    statement = parsed.statement
    if isinstance(statement, MergeSpec):
        assert isinstance(step.statement, oracle.Merge)
        return dataclasses.replace(statement, cardinality=step.statement.cardinality)
    return statement


def _built(step: Step) -> Statement:
    """The statement in the words of the contract."""
    dialect = Spark(*step.aliases, shout=step.shout, source_name=SOURCE)
    statement = step.statement
    match statement:
        case oracle.Merge():
            return _merge(step, statement, dialect)
        case oracle_statements.DeleteFrom(where):
            return DeleteSpec(step.aliases[0], where and where.to_sql(dialect))
        case oracle_statements.UpdateTable(assignments, where):
            return UpdateSpec(
                step.aliases[0], _assignments(assignments, dialect), where and where.to_sql(dialect)
            )
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
