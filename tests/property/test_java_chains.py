"""After each of several random merges Java, pypaimon and the oracle see the same table."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from spark_jobs.contract import statements as contract
from tests.judge.merging import merge
from tests.judge.required import require_java
from tests.judge.tables import Warehouse
from tests.oracle import merge as oracle
from tests.oracle.dialects import Spark
from tests.property.cases import Chain, Step, random_chain
from tests.support.judged_values import differences, from_arrow

SEEDS = (0, 4, 6, 7)
ARROW = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "DATE": pa.date32(),
    "BOOLEAN": pa.bool_(),
}


class Qualified(Spark):
    """Every column with its alias: how names resolve is not what is judged here."""

    def column(self, side, name, *, bare):
        return super().column(side, name, bare=False)


@pytest.fixture
def warehouse(tmp_path) -> Warehouse:
    require_java()
    return Warehouse(tmp_path / "warehouse")


def arrow(columns, rows):
    """Rows of the oracle as an Arrow table."""
    fields = [pa.field(column.name, ARROW[column.type], column.nullable) for column in columns]
    return pa.Table.from_pylist(list(rows), schema=pa.schema(fields))


def case_of(clause, dialect):
    """A clause of the oracle as this project's contract has it."""
    match clause.action:
        case oracle.Update(assignments):
            pairs = [contract.Assignment(name, e.to_sql(dialect)) for name, e in assignments]
            action = contract.UpdateAction(tuple(pairs))
        case oracle.Insert(values, columns):
            action = contract.InsertAction(tuple(v.to_sql(dialect) for v in values), columns)
        case oracle.UpdateAll():
            action = contract.UpdateAllAction()
        case oracle.InsertAll():
            action = contract.InsertAllAction()
        case oracle.Delete():
            action = contract.DeleteAction()
    condition = clause.condition and clause.condition.to_sql(dialect)
    return contract.MergeCase(clause.when, action, condition)


def run_step(spark, warehouse, step: Step, table: str):
    dialect = Qualified(*step.aliases, shout=step.shout)
    return merge(
        spark,
        warehouse,
        arrow(step.source_columns, step.source),
        [case_of(clause, dialect) for clause in step.statement.clauses],
        on=step.statement.on.to_sql(dialect),
        table=table,
        aliases=step.aliases,
        cardinality=step.statement.cardinality,
    )


@pytest.mark.slow
def test_random_merges(spark, warehouse):
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        _run(random_chain(seed), f"d.t{seed}", spark, warehouse, seen)
    # The comparison must not have become empty.
    assert seen["changed"] >= len(SEEDS)
    assert min(seen[when] for when in ("matched", "not_matched", "not_matched_by_source")) > 0


def _run(chain: Chain, table: str, spark, warehouse, seen: Counter[str]) -> None:
    columns = chain.table.columns
    keys = [chain.table.partition] if chain.table.partition else []
    warehouse.create(table, arrow(columns, []).schema, keys)
    for commit in chain.table.commits:
        warehouse.append(table, arrow(columns, commit))
    rows = chain.table.rows
    for step in chain.steps:
        if not isinstance(step.statement, oracle.Merge):
            continue
        outcome = oracle.apply(step.statement, columns, rows, step.source)
        result = run_step(spark, warehouse, step, table)
        if outcome.errors:
            assert result.error is not None, outcome.errors
            assert result.error.code in outcome.errors
        else:
            assert result.error is None, result.error
            seen.update(clause.when for clause in step.statement.clauses)
            seen["changed"] += outcome.changed
        rows = outcome.rows
        expected = from_arrow(arrow(columns, rows))
        assert not differences(warehouse.both_readers(table), expected)
        warehouse.checked_files(table)
