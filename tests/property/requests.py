"""Random statements as requests of the contract."""

from __future__ import annotations

import uuid
from pathlib import Path

from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest, TableName
from spark_jobs.contract.statements import (
    Action,
    Assignment,
    DeleteAction,
    InsertAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
    UpdateAllAction,
)
from tests.oracle import merge as oracle
from tests.oracle.dialects import Spark
from tests.property.cases import Step


def request_of(step: Step, warehouse: Path, target: TableName, source: Path) -> JobRequest:
    """The request that runs ``step``, whose source lies in the parquet file ``source``."""
    return JobRequest(
        operation_id=str(uuid.uuid4()),
        target=target,
        catalog=CatalogSpec("paimon", str(warehouse)),
        statement=merge_of(step),
        sources=(FileSource("changes", str(source), "parquet"),),
    )


def merge_of(step: Step) -> MergeSpec:
    """The statement in the words of the contract."""
    dialect = Spark(*step.aliases, shout=step.shout)
    cases = [
        MergeCase(
            clause.when,
            _action(clause.action, dialect),
            clause.condition.to_sql(dialect) if clause.condition else None,
        )
        for clause in step.merge.clauses
    ]
    return MergeSpec(
        source="changes",
        on=step.merge.on.to_sql(dialect),
        cases=tuple(cases),
        target_alias=step.aliases[0],
        source_alias=step.aliases[1],
        cardinality=step.merge.cardinality,
    )


def _action(action: oracle.Action, dialect: Spark) -> Action:
    match action:
        case oracle.Delete():
            return DeleteAction()
        case oracle.Update(assignments):
            return UpdateAction(
                tuple(Assignment(_name(n, dialect), e.to_sql(dialect)) for n, e in assignments)
            )
        case oracle.UpdateAll():
            return UpdateAllAction()
        case oracle.Insert(values, columns):
            return InsertAction(
                tuple(value.to_sql(dialect) for value in values),
                tuple(_name(column, dialect) for column in columns),
            )
        case oracle.InsertAll():
            return InsertAllAction()
    raise AssertionError(action)


def _name(name: str, dialect: Spark) -> str:
    return name.upper() if dialect.shout else name
