"""Audit tables: made, read, and what a table becomes by what they say."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from spark_jobs.contract.request import TableName
from spark_jobs.contract.side_outputs import AUDIT_COLUMNS
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.spi.connector import Connector

AUDIT = TableName("db", "audit")
Row = dict[str, Any]


def make_audit_table(connector: Connector, name: TableName = AUDIT, **options: str) -> None:
    """An empty audit table."""
    columns = tuple(ColumnSpec(column, kind) for column, kind in AUDIT_COLUMNS.items())
    connector.metadata.create_table(name, CreateTableSpec(columns, table_options=options))


def table_rows(spark: SparkSession, connector: Connector, name: TableName = AUDIT) -> list[Row]:
    """The rows of a table, as this project reads them."""
    table = connector.metadata.load_table(name)
    files = connector.metadata.plan_files(table)
    frame = connector.scan.read(spark, table, files, table.column_names)
    return [row.asDict() for row in frame.select(*table.column_names).collect()]


def replayed(before: list[Row], audit: list[Row], key: tuple[str, ...] = ()) -> Counter[str]:
    """The rows ``before``, as JSON knows them, with the changes of ``audit`` in the order given.

    ``key``: the columns that say which row an update changes; else all old values do.
    """
    rows = Counter(map(_text, before))
    for each in audit:
        old, new = (json.loads(each[name] or "null") for name in ("old_values", "new_values"))
        if each["operation"] == "update":
            named = json.loads(each["row_key"]) if key else old
            found = [t for t in rows if named.items() <= json.loads(t).items() and rows[t]]
            was = json.loads(found[0])
            assert old.items() <= was.items(), each
            rows[found[0]] -= 1
            rows[_text(was | new)] += 1
            continue
        if old is not None:
            assert rows[_text(old)] > 0, each
            rows[_text(old)] -= 1
        if new is not None:
            rows[_text(new)] += 1
    return +rows


def _text(row: Row) -> str:
    return json.dumps(row, sort_keys=True, default=str)
