"""ALTER TABLE as text: every form that Spark, Iceberg and Paimon write, and what is refused."""

from __future__ import annotations

import pytest

from airflow_provider_merge.sql.alter_table import parse_alter_table
from spark_jobs.contract.alter_table import (
    AddColumn,
    AddPartitionField,
    CommentColumn,
    CommentTable,
    DropColumn,
    DropIdentifierFields,
    DropPartitionField,
    MoveColumn,
    RenameColumn,
    ReplacePartitionField,
    SetDefault,
    SetIdentifierFields,
    SetNullable,
    SetProperties,
    SetWriteOrder,
    UnsetProperties,
    WidenColumn,
)
from spark_jobs.contract.request import TableName
from spark_jobs.errors import JobError

FORMS = {
    "ADD COLUMN x INT": [AddColumn("x", "INT")],
    "ADD COLUMNS x INT, y STRING": [AddColumn("x", "INT"), AddColumn("y", "STRING")],
    "ADD COLUMNS (a.b STRUCT<q: INT, r: DECIMAL(10,2)> COMMENT 'it\\'s' AFTER `c d`)": [
        AddColumn("a.b", "STRUCT<q: INT, r: DECIMAL(10,2)>", comment="it's", after="`c d`")
    ],
    "ADD COLUMN IF NOT EXISTS x DECIMAL(5, 2) NOT NULL DEFAULT 1.5 FIRST;": [
        AddColumn("x", "DECIMAL(5, 2)", False, None, "1.5", True, None, True)
    ],
    "DROP COLUMN a.b": [DropColumn("a.b")],
    "DROP COLUMNS IF EXISTS (a, b)": [DropColumn("a", True), DropColumn("b", True)],
    "RENAME COLUMN a.b TO `new name`": [RenameColumn("a.b", "new name")],
    "ALTER COLUMN a TYPE BIGINT": [WidenColumn("a", "BIGINT")],
    "ALTER a SET DATA TYPE BIGINT": [WidenColumn("a", "BIGINT")],
    "CHANGE COLUMN a COMMENT 'x'": [CommentColumn("a", "x")],
    "ALTER COLUMN a SET NOT NULL, b DROP NOT NULL, c FIRST, d AFTER c": [
        *(SetNullable("a", False), SetNullable("b"), MoveColumn("c", True)),
        MoveColumn("d", after="c"),
    ],
    "ALTER COLUMN a SET DEFAULT 'x', b DROP DEFAULT": [
        SetDefault("a", "'x'"),
        SetDefault("b", None),
    ],
    "SET TBLPROPERTIES ('format-version' = '3', write.x = 5)": [
        SetProperties({"format-version": "3", "write.x": "5"})
    ],
    "UNSET TBLPROPERTIES IF EXISTS ('a', b.c)": [UnsetProperties(("a", "b.c"))],
    "ADD PARTITION FIELD bucket(16, id) AS shard": [AddPartitionField("bucket(16, id)", "shard")],
    "DROP PARTITION FIELD IF EXISTS days(ts)": [DropPartitionField("days(ts)", True)],
    "REPLACE PARTITION FIELD ts_day WITH hours(ts)": [ReplacePartitionField("ts_day", "hours(ts)")],
    "WRITE ORDERED BY a ASC NULLS LAST, bucket(4, id) DESC": [
        SetWriteOrder(("a ASC NULLS LAST", "bucket(4, id) DESC"), "range")
    ],
    "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY (id)": [SetWriteOrder(("id",), "hash")],
    "WRITE LOCALLY ORDERED BY id": [SetWriteOrder(("id",))],
    "WRITE UNORDERED": [SetWriteOrder((), "none")],
    "SET IDENTIFIER FIELDS id, a.b": [SetIdentifierFields(("id", "a.b"))],
    "DROP IDENTIFIER FIELDS id": [DropIdentifierFields(("id",))],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form(form):
    assert parse_alter_table(f"ALTER TABLE d.t {form}")[1].changes == tuple(FORMS[form])


def test_names_of_tables():
    target = TableName("d", "t")
    assert parse_alter_table("alter table T add column x int", "d")[0] == TableName("d", "T")
    found, spec = parse_alter_table("COMMENT ON TABLE d.t IS 'x'")
    assert (found, spec.changes) == (target, (CommentTable("x"),))
    assert parse_alter_table("COMMENT ON TABLE d.t IS NULL")[1].changes == (CommentTable(""),)


REFUSED = {
    "DROP PARTITION (day = '1')": ("NOT_SUPPORTED", "DROP PARTITION is not supported"),
    "ADD PARTITION (day = '1')": ("NOT_SUPPORTED", "ADD PARTITION is not supported"),
    "RENAME TO d.u": ("NOT_SUPPORTED", "RENAME TO is not supported"),
    "SET LOCATION '/x'": ("NOT_SUPPORTED", "SET LOCATION is not supported"),
    "REPLACE COLUMNS (a INT)": ("NOT_SUPPORTED", "REPLACE COLUMNS is not supported"),
    "CREATE BRANCH b": ("NOT_SUPPORTED", "CREATE BRANCH is not supported"),
    "RECOVER PARTITIONS": ("SYNTAX_ERROR", "expected ADD COLUMN, DROP COLUMN, RENAME COLUMN"),
    "ADD COLUMN": ("SYNTAX_ERROR", "expected the name of a column, found the end"),
    "ADD COLUMN x": ("SYNTAX_ERROR", "expected the type of the column, found the end"),
    "ADD COLUMN x INT UNIQUE": ("SYNTAX_ERROR", "expected NOT NULL, DEFAULT, COMMENT, FIRST"),
    "ADD COLUMN x NUMBER": ("REQUEST_INVALID", "type: of column x: 'NUMBER' is not a type"),
    "ADD COLUMN x INT DEFAULT now()": ("REQUEST_INVALID", "now() is not a literal of the type"),
    "ADD PARTITION FIELD cube(a)": ("REQUEST_INVALID", "field: cube(a): cube is not a transform"),
    "ALTER COLUMN a": ("SYNTAX_ERROR", "expected TYPE, COMMENT, SET NOT NULL, DROP NOT NULL"),
    "DROP COLUMN a; DROP TABLE d.t": ("SYNTAX_ERROR", "a second statement begins"),
    "SET TBLPROPERTIES ()": ("SYNTAX_ERROR", "expected the name of a property, found ')'"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_refused(form):
    code, message = REFUSED[form]
    with pytest.raises(JobError) as caught:
        parse_alter_table(f"ALTER TABLE d.t {form}")
    assert caught.value.code.name == code
    assert message in caught.value.message
    assert caught.value.message.startswith("line 1, column ")
