"""Columns that options of a Paimon table name, whose names have blanks and dots."""

from __future__ import annotations

from typing import Any

import pytest

from spark_jobs.contract.alter_table import DropColumn, RenameColumn
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.spi.connector import Connector
from tests.connectors.paimon.test_alter_table import alter, failure
from tests.support.paimon_tables import NAME


@pytest.mark.parametrize("change", [RenameColumn, DropColumn])
@pytest.mark.parametrize(
    ("column", "option", "value"),
    [
        ("a b", "sequence.field", "n,a b"),
        ("a.b", "fields.a.b.aggregate-function", "sum"),
    ],
)
def test_columns_with_other_characters_that_options_name_stay(
    connector: Connector, change: Any, column: str, option: str, value: str
) -> None:
    columns = (ColumnSpec("id", "INT", nullable=False), ColumnSpec(column, "INT"))
    engine = {"merge-engine": "aggregation"} if option.startswith("fields") else {}
    spec = CreateTableSpec(
        columns=(*columns, ColumnSpec("n", "INT")),
        primary_key=("id",),
        table_options={"bucket": "1", **engine, option: value},
    )
    connector.metadata.create_table(NAME, spec)
    arguments = (f"`{column}`",) if change is DropColumn else (f"`{column}`", "new")

    found = failure(lambda: alter(connector, change(*arguments)))

    assert f"its option {option} names the column {column}" in found.message
