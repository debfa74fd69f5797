"""Random statements as the SQL text that a user would write."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.contract.request import TableName
from tests.oracle.dialects import Spark
from tests.oracle.expressions import Expression
from tests.oracle.merge import Action, Clause, Delete, Insert, InsertAll, Merge, Update, UpdateAll
from tests.oracle.statements import DeleteFrom, InsertRows, UpdateTable
from tests.property.cases import Step

SOURCE = "feed"
_WHEN = {
    "matched": "WHEN MATCHED",
    "not_matched": "WHEN NOT MATCHED",
    "not_matched_by_source": "WHEN NOT MATCHED BY SOURCE",
}
# What a parser of the frame must not take for a part of it.
_NOISE = [
    "\n",
    " -- WHEN MATCHED THEN DELETE; '\n",
    " /* it's ` ON ( */ ",
    "\n\t",
    " /* /* WHERE */ SET a = 1 */\n",
]


def to_sql(step: Step, target: TableName) -> str:
    """The text of a step on a table; in the noisy form with comments between its parts."""
    dialect = Spark(*step.aliases, shout=step.shout, source_name=SOURCE)
    parts = _parts(step, target, dialect)
    if step.form != "noisy sql":
        return " ".join(parts)
    noise = [_NOISE[index % len(_NOISE)] for index in range(len(parts) - 1)]
    return "".join(part + gap for part, gap in zip(parts, [*noise, "\n;\n"], strict=True))


def _parts(step: Step, target: TableName, dialect: Spark) -> list[str]:
    alias = f"AS {step.aliases[0]}"
    statement = step.statement
    match statement:
        case Merge():
            return ["MERGE INTO", str(target), alias, *_merge(statement, dialect)]
        case DeleteFrom(where):
            return ["DELETE FROM", str(target), alias, *_where(where, dialect)]
        case UpdateTable(assignments, where):
            assigned = _set(assignments, dialect)
            return ["UPDATE", str(target), alias, *assigned, *_where(where, dialect)]
        case InsertRows():
            return [*_insert_into(statement, target, dialect), *_rows(statement, dialect)]
    raise AssertionError(statement)


def _insert_into(statement: InsertRows, target: TableName, dialect: Spark) -> list[str]:
    verb = "INSERT INTO" if statement.mode == "append" else "INSERT OVERWRITE TABLE"
    parts = [verb, str(target)]
    if statement.spec is not None and statement.key is not None:
        value = statement.spec.to_sql(dialect)
        parts += ["PARTITION", f"({dialect.name(statement.key)} = {value})"]
    if statement.insert.columns:
        parts += [f"({', '.join(map(dialect.name, statement.insert.columns))})"]
    return parts


def _rows(statement: InsertRows, dialect: Spark) -> list[str]:
    values = ", ".join(value.to_sql(dialect) for value in statement.insert.values)
    return ["SELECT", values, "FROM", dialect.source(), *_where(statement.where, dialect)]


def rows_query(statement: InsertRows, dialect: Spark) -> str:
    """The query of the new rows."""
    return " ".join(_rows(statement, dialect))


def _merge(merge: Merge, dialect: Spark) -> list[str]:
    parts = ["USING", dialect.source(), "ON", merge.on.to_sql(dialect)]
    for clause in merge.clauses:
        parts += _clause(clause, dialect)
    return parts


def _clause(clause: Clause, dialect: Spark) -> list[str]:
    condition = ["AND", clause.condition.to_sql(dialect)] if clause.condition else []
    return [_WHEN[clause.when], *condition, "THEN", *_action(clause.action, dialect)]


def _action(action: Action, dialect: Spark) -> list[str]:
    match action:
        case Delete():
            return ["DELETE"]
        case Update(assignments):
            return ["UPDATE", *_set(assignments, dialect)]
        case UpdateAll():
            return ["UPDATE", "SET", "*"]
        case Insert(values, columns):
            names = [f"({', '.join(map(dialect.name, columns))})"] if columns else []
            texts = ", ".join(value.to_sql(dialect) for value in values)
            return ["INSERT", *names, f"VALUES ({texts})"]
        case InsertAll():
            return ["INSERT", "*"]
    raise AssertionError(action)


def _set(assignments: Sequence[tuple[str, Expression]], dialect: Spark) -> list[str]:
    texts = (f"{dialect.name(name)} = {value.to_sql(dialect)}" for name, value in assignments)
    return ["SET", ", ".join(texts)]


def _where(where: Expression | None, dialect: Spark) -> list[str]:
    return [] if where is None else ["WHERE", where.to_sql(dialect)]
