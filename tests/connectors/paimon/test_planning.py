"""Planned files: order, partition values, statistics, and files that are refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange

from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import ColumnRange, TableHandle
from tests.support.paimon_tables import NAME, append, append_with_pypaimon, create

DAY = dt.date(2024, 2, 29)


def test_files_come_in_the_order_of_their_paths_with_dense_ordinals(connector: Connector) -> None:
    create(connector, {"id": "int", "p": "int"}, ["p"])
    for i in range(3):
        append(connector, [{"id": i, "p": p} for p in (3, 1, 2)], operation_id=f"op{i}")

    table = connector.metadata.load_table(NAME)
    files = connector.metadata.plan_files(table)

    assert [file.ordinal for file in files] == list(range(9))
    assert [file.path for file in files] == sorted(file.path for file in files)
    assert files == connector.metadata.plan_files(connector.metadata.load_table(NAME))


def test_statistics_come_back_as_python_values(connector: Connector) -> None:
    create(
        connector,
        {
            "id": "bigint",
            "amount": "decimal(30,2)",
            "name": "varchar(10)",
            "at": "timestamp",
            "local": "timestamp_ntz",
            "flag": "boolean",
            "raw": "binary",
            "ratio": "double",
            "empty": "int",
            "list": "array<int>",
            "day": "date",
        },
        ["day"],
    )
    at = dt.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=dt.UTC)
    row = {
        "id": -(2**62),
        "amount": Decimal("12345678901234567890.25"),
        "name": "ü",
        "at": at,
        "local": at.replace(tzinfo=None),
        "flag": False,
        "raw": b"\x00\xff",
        "ratio": 0.1,
        "empty": None,
        "list": [1],
        "day": DAY,
    }
    append(connector, [row, {"day": DAY, "id": 5, "amount": Decimal("-0.01")}])

    (file,) = connector.metadata.plan_files(connector.metadata.load_table(NAME))

    assert dict(file.ranges) == {
        "id": ColumnRange(-(2**62), 5, 0),
        "amount": ColumnRange(Decimal("-0.01"), row["amount"], 0),
        "name": ColumnRange("ü", "ü", 1),
        # Bounds of timestamps depend on the writer.
        "at": ColumnRange(None, None, 1),
        "local": ColumnRange(None, None, 1),
        "flag": ColumnRange(False, False, 1),
        "raw": ColumnRange(b"\x00\xff", b"\x00\xff", 1),
        "ratio": ColumnRange(0.1, 0.1, 1),
        "empty": ColumnRange(None, None, 2),
        "list": ColumnRange(None, None, 1),
        "day": ColumnRange(DAY, DAY, 0),
    }
    assert (dict(file.partition), file.row_count) == ({"day": DAY}, 2)


def test_a_nan_makes_bounds_unknown(connector: Connector) -> None:
    create(connector, {"ratio": "float"})
    append(connector, [{"ratio": 1.0}, {"ratio": float("nan")}])

    (file,) = connector.metadata.plan_files(connector.metadata.load_table(NAME))

    assert file.ranges["ratio"] == ColumnRange(None, None, 0)


def test_files_of_writers_without_statistics_have_unknown_ranges(connector: Connector) -> None:
    table = create(connector, {"id": "int"})
    append_with_pypaimon(table, [{"id": 1}])

    (file,) = connector.metadata.plan_files(connector.metadata.load_table(NAME))

    assert file.ranges["id"] == ColumnRange(None, None, None)
    assert file.row_count == 1


def test_the_plan_is_that_of_the_pinned_snapshot(connector: Connector) -> None:
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    table = connector.metadata.load_table(NAME)
    append(connector, [{"id": 2}], operation_id="later")

    assert len(connector.metadata.plan_files(table)) == 1


def alter(table: TableHandle, *changes: SchemaChange) -> None:
    catalog = table.native.table.catalog_environment.catalog_loader.load()
    catalog.alter_table(str(NAME), list(changes))


def test_ranges_of_older_files_are_those_of_the_same_column(connector: Connector) -> None:
    table = create(connector, {"id": "int", "n": "int", "t": "int"})
    append(connector, [{"id": 1, "n": 5, "t": None}, {"id": 2, "n": 7, "t": 3}])
    alter(table, SchemaChange.drop_column("n"), SchemaChange.rename_column("t", "n"))
    alter(table, SchemaChange.add_column("t", AtomicType("INT")))
    alter(table, SchemaChange.update_column_type("n", AtomicType("DECIMAL(12, 1)")))

    (file,) = connector.metadata.plan_files(connector.metadata.load_table(NAME))

    assert file.ranges["id"] == ColumnRange(1, 2, 0)
    assert file.ranges["n"] == ColumnRange(Decimal(3), Decimal(3), 1)
    assert isinstance(file.ranges["n"].minimum, Decimal)
    assert file.ranges["t"] == ColumnRange(None, None, 2), "all NULL: another column of that name"


def test_a_type_that_was_not_widened_is_refused(connector: Connector) -> None:
    table = create(connector, {"id": "int", "n": "int"})
    append(connector, [{"id": 1, "n": 5}])
    alter(table, SchemaChange.update_column_type("n", AtomicType("STRING")))

    with pytest.raises(NotSupportedError) as raised:
        connector.metadata.plan_files(connector.metadata.load_table(NAME))

    problem = f"Column n of {NAME} is of type STRING, but of type INT in data file data-"
    assert raised.value.message.startswith(problem)


def test_a_schema_that_is_missing_is_named(connector: Connector) -> None:
    table = create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    alter(table, SchemaChange.add_column("n", AtomicType("INT")))
    Path(f"{table.native.path}/schema/schema-0").unlink()

    with pytest.raises(CatalogError) as raised:
        connector.metadata.plan_files(connector.metadata.load_table(NAME))

    assert raised.value.code is ErrorCode.METADATA_UNREADABLE
    assert "schema 0" in raised.value.message


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("file_name", "data-1.csv", "is neither a parquet nor an ORC nor an Avro file"),
        ("file_name", "_data-1.parquet", "hidden file"),
        ("write_cols", ["id"], "only some columns"),
        ("first_row_id", 0, "only some columns"),
    ],
)
def test_files_that_can_not_be_read_right_are_refused(
    connector: Connector, attribute: str, value: object, reason: str
) -> None:
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    table = connector.metadata.load_table(NAME)
    setattr(table.native.files.located_entries[0][1].file, attribute, value)

    with pytest.raises(NotSupportedError, match=reason):
        connector.metadata.plan_files(table)
