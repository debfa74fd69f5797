"""Which columns of an older schema are those of the table, and which changes of type are read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pypaimon.schema.data_types import DataTypeParser, PyarrowFieldParser

from spark_jobs.connectors.paimon.format.schema_history import (
    ChangedTypeError,
    SchemaField,
    mappings,
)


def field(name: str, field_id: int, kind: Any) -> SchemaField:
    arrow = PyarrowFieldParser.from_paimon_type(DataTypeParser.parse_data_type(kind))
    return SchemaField(field_id, kind, pa.field(name, arrow))


def row(*fields: tuple[str, int, Any]) -> dict[str, Any]:
    named = [{"id": field_id, "name": name, "type": kind} for name, field_id, kind in fields]
    return {"type": "ROW", "fields": named}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("TINYINT", "SMALLINT"),
        ("INT", "BIGINT"),
        ("FLOAT", "DOUBLE"),
        ("DECIMAL(10, 2)", "DECIMAL(13, 5)"),
        ("TINYINT", "DECIMAL(3, 0)"),
        ("INT", "DECIMAL(12, 2)"),
        ("BIGINT", "DECIMAL(19, 0)"),
        ("CHAR(3)", "CHAR(5)"),
        ("VARCHAR(3)", "VARCHAR(5)"),
        ("VARCHAR(3)", "STRING"),
        ("BINARY(3)", "BINARY(5)"),
        ("VARBINARY(3)", "BYTES"),
        ("TIMESTAMP(0)", "TIMESTAMP(6)"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("TIMESTAMP(9)", "TIMESTAMP(9)"),
        ("INT NOT NULL", "BIGINT"),
        ("INT", "INT NOT NULL"),
    ],
)
def test_a_widened_type_is_read(before: str, after: str) -> None:
    (found,) = mappings([field("c", 1, before)], [field("c", 1, after)])
    assert found.source is not None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("BIGINT", "INT"),
        ("INT", "STRING"),
        ("INT", "DOUBLE"),
        ("DOUBLE", "FLOAT"),
        ("BIGINT", "DECIMAL(18, 0)"),
        ("INT", "DECIMAL(10, 1)"),
        ("DECIMAL(10, 2)", "DECIMAL(12, 5)"),
        ("DECIMAL(10, 2)", "DECIMAL(12, 1)"),
        ("STRING", "VARCHAR(5)"),
        ("CHAR(5)", "CHAR(3)"),
        ("CHAR(3)", "VARCHAR(3)"),
        ("STRING", "BYTES"),
        ("TIMESTAMP(3)", "TIMESTAMP(9)"),
        ("TIMESTAMP(6)", "TIMESTAMP(3)"),
        ("TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("DATE", "TIMESTAMP(6)"),
        ("BOOLEAN", "INT"),
        (row(("x", 1, "INT")), "INT"),
    ],
)
def test_any_other_change_is_refused(before: Any, after: Any) -> None:
    old, new = row(("x", 7, before)), row(("y", 7, after))
    with pytest.raises(ChangedTypeError) as raised:
        mappings([field("c", 1, old)], [field("c", 1, new)])

    assert raised.value.column == "c.y"
    assert raised.value.new == after


def test_columns_and_nested_fields_are_paired_by_id() -> None:
    old = [field("a", 1, "INT"), field("s", 2, row(("x", 3, "INT"), ("y", 4, "INT")))]
    new = [
        field("s", 2, row(("y", 3, "INT"), ("x", 5, "INT"))),
        field("b", 1, "INT"),
        field("a", 6, "INT"),
    ]
    s, b, a = mappings(old, new)

    assert (b.source and b.source.name, b.is_copy) == ("a", True)
    assert a.source is None
    assert [part.source and part.source.name for part in s.parts] == ["x", None]
    assert not s.is_copy


def test_an_unchanged_struct_is_a_copy_and_one_added_again_is_not() -> None:
    old = [field("s", 1, row(("x", 2, "INT")))]
    assert mappings(old, [field("t", 1, row(("x", 2, "INT")))])[0].is_copy
    assert not mappings(old, [field("s", 1, row(("x", 3, "INT")))])[0].is_copy
    assert not mappings(old, [field("s", 1, row(("x", 2, "INT NOT NULL")))])[0].is_copy
