"""The rows of an audit: one for each row that a statement changes, the same for every table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from spark_jobs.contract import properties as recorded
from spark_jobs.contract.request import TableName
from spark_jobs.contract.row_checks import CLAUSE, NEW, OLD, OPERATION
from spark_jobs.contract.side_outputs import AUDIT_COLUMNS, require_audit_columns, table_text
from spark_jobs.engine.query.json_values import json_text
from spark_jobs.errors import AnalysisError, CatalogError, ErrorCode, NotSupportedError
from spark_jobs.spi.connector import find_table

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector
    from spark_jobs.spi.tables import CommittedSnapshot, TableHandle

KEY = "row_key"
_PLACE = "audit_table"


def audit_rows(
    changes: DataFrame, types: Mapping[str, DataType], keys: Collection[str], *, are_unique: bool
) -> DataFrame:
    """The rows of ``changes`` (see ``RowCheck``) of a table with these ``types``, as an audit's.

    Values are JSON objects by column: of an inserted or deleted row, all; of an updated one, those
    that differ, and all old ones unless the ``keys`` ``are_unique``, so that they tell the row.
    """
    texts = [
        json_text(F.col(side)[name], kind, name).alias(f"{side}_{number}")
        for side in (OLD, NEW)
        for number, (name, kind) in enumerate(types.items())
    ]
    frame = changes.select(OPERATION, CLAUSE, *texts)
    numbers = range(len(types))
    key_numbers = [number for number, name in enumerate(types) if name in keys]
    is_update = F.col(OPERATION) == "update"

    def changed(side: str) -> list[Column]:
        differs = (F.col(f"{OLD}_{n}") != F.col(f"{NEW}_{n}") for n in numbers)
        return [
            F.when(~is_update | each, F.col(f"{side}_{n}"))
            for n, each in zip(numbers, differs, strict=True)
        ]

    def whole(side: str, of: Sequence[int]) -> list[Column]:
        return [F.col(f"{side}_{n}") for n in of]

    old = changed(OLD) if are_unique else whole(OLD, numbers)
    is_insert = F.col(OPERATION) == "insert"
    key = F.when(is_insert, _object(whole(NEW, key_numbers)))
    key = key.otherwise(_object(whole(OLD, key_numbers)))
    return frame.select(
        OPERATION,
        CLAUSE,
        (key if key_numbers else F.lit(None).cast("string")).alias(KEY),
        F.when(~is_insert, _object(old)).alias("old_values"),
        F.when(F.col(OPERATION) != "delete", _object(changed(NEW))).alias("new_values"),
    )


def of_snapshot(frame: DataFrame, table: str, commit: CommittedSnapshot) -> DataFrame:
    """Rows of ``audit_rows`` with all columns of an audit, of the snapshot that has the changes."""
    properties = commit.properties
    constants = {
        "operation_id": properties.get(recorded.OPERATION_ID),
        "table_name": table,
        "snapshot_id": commit.snapshot_id,
        "dag_id": properties.get(recorded.DAG_ID),
        "run_id": properties.get(recorded.RUN_ID),
        "task_id": properties.get(recorded.TASK_ID),
        "map_index": properties.get(recorded.MAP_INDEX),
        "statement": properties.get(recorded.STATEMENT_NAME) or properties.get(recorded.STATEMENT),
    }
    return frame.select(
        *(
            (F.lit(constants[name]) if name in constants else F.col(name)).cast(kind).alias(name)
            for name, kind in AUDIT_COLUMNS.items()
        )
    )


def require_audit_table(connector: Connector, name: TableName) -> TableHandle:
    """The audit table, which takes the rows of every audit.

    Raises:
        CatalogError: TABLE_NOT_FOUND, with the statement that makes it.
        AnalysisError: COLUMN_NOT_FOUND, TYPE_MISMATCH or EXPRESSION_INVALID.
        NotSupportedError: it has a primary key, or no rows can be written there.
    """
    table = find_table(connector.metadata, name)
    text = table_text(str(name), AUDIT_COLUMNS)
    if table is None:
        raise CatalogError(
            ErrorCode.TABLE_NOT_FOUND,
            f"{_PLACE}: there is no table {name}.",
            f"Make it: {text}",
        )
    connector.metadata.require_writable(table)
    if table.key_columns:
        raise NotSupportedError(
            f"{_PLACE}: {name} has a primary key, under which rows of the audit would replace each "
            "other.",
            f"Name a table without one: {text}",
        )
    columns = {each.name: (each.type, each.nullable) for each in table.columns}
    require_audit_columns(str(name), columns)
    for column in table.columns:
        is_other = column.name.lower() not in AUDIT_COLUMNS
        if is_other and not column.nullable and column.default is None:
            raise AnalysisError(
                ErrorCode.EXPRESSION_INVALID,
                f"{_PLACE}: column {column.name} of {name} is NOT NULL, and no audit has a value "
                "for it.",
                f"Give it a default, or drop it. An audit table is one of: {text}",
            )
    return table


def _object(parts: Sequence[Column]) -> Column:
    """A JSON object of those of ``parts`` that are not NULL."""
    return F.concat(F.lit("{"), F.concat_ws(",", *parts), F.lit("}"))
