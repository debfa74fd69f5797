"""What ALTER TABLE refuses, by name; the table is as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.alter_table import (
    AddColumn,
    AddPartitionField,
    CommentTable,
    DropColumn,
    DropIdentifierFields,
    DropPartitionField,
    MoveColumn,
    RenameColumn,
    SetDefault,
    SetIdentifierFields,
    SetNullable,
    SetProperties,
    SetWriteOrder,
    TableChange,
    WidenColumn,
)
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.altering import alter, failure, made, table
from tests.connectors.iceberg.plain_tables import PlainCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    return made(tmp_path)


REFUSED: dict[str, tuple[TableChange | tuple[TableChange, ...], str, str]] = {
    "exists": (AddColumn("S", "INT"), "COLUMN_EXISTS", "db.t has a column s already: STRING"),
    "exists otherwise": (
        AddColumn("s", "INT", if_not_exists=True),
        "COLUMN_EXISTS",
        "db.t has a column s already",
    ),
    "no struct": (AddColumn("s.x", "INT"), "COLUMN_NOT_FOUND", "db.t has no column s"),
    "required": (AddColumn("n", "INT", nullable=False), "NOT_SUPPORTED", "cannot be added as NOT"),
    "default": (AddColumn("n", "INT", default="1"), "NOT_SUPPORTED", "has version 2 of the format"),
    "no default": (SetDefault("s", "'x'"), "NOT_SUPPORTED", "has version 2 of the format"),
    "type": (AddColumn("n", "TINYINT"), "NOT_SUPPORTED", "Iceberg has no type TINYINT"),
    "reserved": (AddColumn("_file", "INT"), "NOT_SUPPORTED", "need the name _file"),
    "own": (RenameColumn("s", "__merge_x"), "NOT_SUPPORTED", "begin with __merge_"),
    "renamed to another": (RenameColumn("s", "ID"), "COLUMN_EXISTS", "a column id already: INT"),
    "unknown": (DropColumn("gone"), "COLUMN_NOT_FOUND", "db.t has no column gone"),
    "narrower": (WidenColumn("id", "SMALLINT"), "NOT_SUPPORTED", "Iceberg has no type SMALLINT"),
    "another type": (WidenColumn("s", "INT"), "TYPE_MISMATCH", "s of db.t is STRING, which cannot"),
    "another scale": (WidenColumn("d", "DECIMAL(9, 3)"), "TYPE_MISMATCH", "d of db.t is DECIMAL"),
    "not null": (SetNullable("s", False), "NOT_SUPPORTED", "s of db.t admits NULL"),
    "itself": (MoveColumn("s", after="S"), "COLUMN_NOT_FOUND", "s of db.t cannot stand behind"),
    "element": (RenameColumn("a.y.element", "x"), "NOT_SUPPORTED", "not a field"),
    "in the key of a map": (
        (AddColumn("k", "MAP<STRUCT<x: INT>, INT>"), RenameColumn("k.key.x", "y")),
        "NOT_SUPPORTED",
        "k.key.x is in the keys of a map",
    ),
    "partition source": (DropColumn("ts"), "NOT_SUPPORTED", "partition field ts_day is of a col"),
    "partition name": (AddColumn("TS_day", "INT"), "NOT_SUPPORTED", "would both be called ts_day"),
    "second time": (AddPartitionField("hour(ts)"), "NOT_SUPPORTED", "there is ts_day already"),
    "same field": (AddPartitionField("days(ts)"), "COLUMN_EXISTS", "a partition field ts_day alre"),
    "transform": (AddPartitionField("day(s)"), "NOT_SUPPORTED", "column s is STRING"),
    "nested partition": (AddPartitionField("a.x"), "NOT_SUPPORTED", "of a nested field"),
    "unknown field": (DropPartitionField("gone"), "COLUMN_NOT_FOUND", "no partition field gone"),
    "order": (SetWriteOrder(("a",)), "NOT_SUPPORTED", "by which rows are not sorted here"),
    "ordered": (
        (SetWriteOrder(("s",)), DropColumn("s")),
        "NOT_SUPPORTED",
        "rows are sorted by a column that is dropped",
    ),
    "identifier": (SetIdentifierFields(("s",)), "NOT_SUPPORTED", "column s admits NULL"),
    "identifier dropped": (
        (SetIdentifierFields(("id",)), DropColumn("id")),
        "NOT_SUPPORTED",
        "is an identifier field, and cannot be dropped",
    ),
    "identifier nullable": (
        (SetIdentifierFields(("id",)), SetNullable("id")),
        "NOT_SUPPORTED",
        "column id admits NULL",
    ),
    "no identifier": (DropIdentifierFields(("s",)), "COLUMN_NOT_FOUND", "is no identifier"),
    "older version": (
        SetProperties({"format-version": "1"}),
        "NOT_SUPPORTED",
        "no table goes back",
    ),
    "no version": (
        SetProperties({"format-version": "4"}),
        "NOT_SUPPORTED",
        "version 4 of the form",
    ),
    "location": (SetProperties({"location": "/x"}), "NOT_SUPPORTED", "location is not a property"),
    "format": (SetProperties({"write.format.default": "csv"}), "NOT_SUPPORTED", "write.format.def"),
    "number": (
        SetProperties({"commit.manifest.min-count-to-merge": "many"}),
        "NOT_SUPPORTED",
        "is not a whole number",
    ),
    "versions": (
        SetProperties({"write.metadata.previous-versions-max": "1.5"}),
        "NOT_SUPPORTED",
        "is not a whole number",
    ),
    "relative path": (
        SetProperties({"write.metadata.path": "warehouse/t"}),
        "NOT_SUPPORTED",
        "write.metadata.path = 'warehouse/t' is not a whole path",
    ),
    "other storage": (
        SetProperties({"write.data.path": "s3://elsewhere/t"}),
        "NOT_SUPPORTED",
        "write.data.path = s3://elsewhere/t is on other storage",
    ),
    "nested default": (
        (SetProperties({"format-version": "3"}), SetDefault("a", "1")),
        "NOT_SUPPORTED",
        "a is STRUCT, and only columns of plain types have defaults",
    ),
    "encrypted": (SetProperties({"encryption.key-id": "k"}), "NOT_SUPPORTED", "encryption.key-id"),
    "mapping": (
        SetProperties({"schema.name-mapping.default": "{"}),
        "NOT_SUPPORTED",
        "is not the JSON of a name mapping",
    ),
}


@pytest.mark.parametrize(("changes", "code", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_changes_nothing(
    catalog: PlainCatalog, connector: Connector, changes: Any, code: str, problem: str
) -> None:
    before = table(catalog).metadata
    given = changes if isinstance(changes, tuple) else (changes,)

    # What stands before it is not done, either.
    found = failure(lambda: alter(connector, CommentTable("x"), *given))

    assert found.code.name == code
    assert problem in found.message
    assert found.remedy
    assert table(catalog).metadata == before
