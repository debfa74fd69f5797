"""Deletes by value: which rows they are about, whatever the type and the file's age."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    FixedType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from spark_jobs.connectors.iceberg.format.deletes import DeletedRows
from spark_jobs.connectors.iceberg.read.scanned_files import scanned_file
from spark_jobs.connectors.iceberg.table.manifests import DELETES, EQUALITY_DELETES
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.errors import CatalogError
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.support.iceberg_foreign_files import add_file

MOMENT = dt.datetime.fromisoformat("2026-01-31T12:00:00")
VALUES: list[tuple[Any, Any, Any]] = [
    (BooleanType(), True, False),
    (IntegerType(), 1, 2),
    (LongType(), 2**62, -(2**62)),
    (DecimalType(9, 2), Decimal("1.25"), Decimal("1.26")),
    (DecimalType(38, 10), Decimal("12345678901234567890.5"), Decimal(0)),
    (DateType(), dt.date(1969, 1, 1), dt.date(2026, 1, 1)),
    (TimestampType(), MOMENT, MOMENT.replace(year=1)),
    (TimestamptzType(), MOMENT.replace(tzinfo=dt.UTC), dt.datetime(1, 1, 1, tzinfo=dt.UTC)),
    (TimeType(), dt.time(1, 2, 3), dt.time(0)),
    (StringType(), "", "a"),
    (BinaryType(), b"\x00", b"\xff"),
    (FixedType(3), b"abc", b"abd"),
    (UUIDType(), uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes),
]


def delete_by_value(
    connector: Connector, rows: list[dict[str, Any]], *names: str, measured: bool = False
) -> None:
    """Commit a file that deletes the rows with the values of ``rows`` in the columns ``names``.

    ``measured``: the manifest has the bounds of the columns, and how many values are NULL.
    """
    table = pinned_table(connector.metadata.load_table(NAME)).table
    schema = table.schema().select(*names)
    path = Path(table.location().removeprefix("file://"), f"{uuid.uuid4()}.parquet")
    pq.write_table(pa.Table.from_pylist(rows, schema=schema.as_arrow()), path)
    add_file(
        connector,
        DELETES,
        content=EQUALITY_DELETES,
        file_format="PARQUET",
        file_path=f"file://{path}",
        file_size_in_bytes=path.stat().st_size,
        record_count=len(rows),
        equality_ids=sorted(schema.field_ids),
        **(_measured(schema, rows) if measured else {}),
    )


def _measured(schema: Schema, rows: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: [] for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
    }
    for field in schema.fields:
        values = [row[field.name] for row in rows if row[field.name] is not None]
        found["value_counts"].append({"key": field.field_id, "value": len(rows)})
        nulls = {"key": field.field_id, "value": len(rows) - len(values)}
        found["null_value_counts"].append(nulls)
        for name, bound in (("lower_bounds", min), ("upper_bounds", max)):
            if values:
                least = to_bytes(field.field_type, bound(values))
                found[name].append({"key": field.field_id, "value": least})
    return found


def live_ids(connector: Connector) -> list[int]:
    """The ids of the rows that are not deleted."""
    table = connector.metadata.load_table(NAME)
    pinned = pinned_table(table)
    found = []
    for number, file in enumerate(pinned.files):
        ids = pq.read_table(file.path, columns=["id"]).column("id").to_pylist()
        deletes = scanned_file(pinned, NAME, number).deletes
        gone = DeletedRows(pinned.storage.filesystem).positions(deletes)
        found += [each for place, each in enumerate(ids) if place not in set(gone.tolist())]
    return sorted(found)


@pytest.mark.parametrize("row_groups", [1, 5])
def test_values_of_all_types_and_null(tmp_path: Path, row_groups: int) -> None:
    """Row 2n has the value and row 2n + 1 has NULL in column n; rows of other values stay."""
    fields = [NestedField(1, "id", IntegerType(), required=True)]
    fields += [NestedField(n + 2, f"c{n}", kind) for n, (kind, *_) in enumerate(VALUES)]
    columns = {f"c{n}": other for n, (*_, other) in enumerate(VALUES)}
    rows = []
    for n, (_, value, _) in enumerate(VALUES):
        rows.append({"id": 2 * n, **columns, f"c{n}": value})
        rows.append({"id": 2 * n + 1, **columns, f"c{n}": None})
    rows.append({"id": 2 * len(VALUES), **columns})
    catalog = PlainCatalog(tmp_path)
    schema = Schema(*fields)
    catalog.create(
        schema,
        {
            "format-version": "2",
            "write.parquet.row-group-limit": str(-(-len(rows) // row_groups)),
        },
        pa.Table.from_pylist(rows, schema=schema.as_arrow()),
    )
    connector = catalog.open()
    for n, (_, value, _) in enumerate(VALUES):
        delete_by_value(connector, [{f"c{n}": value}, {f"c{n}": None}], f"c{n}")
        assert live_ids(connector) == list(range(2 * n + 2, 2 * len(VALUES) + 1)), VALUES[n][0]


SCHEMA = Schema(
    NestedField(1, "id", IntegerType()),
    NestedField(2, "a", IntegerType()),
    NestedField(3, "b", StringType()),
)


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """Rows with all pairs of 0, 1, 2 and NULL in ``a`` and x, y and NULL in ``b``."""
    pairs = [(a, b) for a in (0, 1, 2, None) for b in ("x", "y", None)]
    rows = [{"id": n, "a": a, "b": b} for n, (a, b) in enumerate(pairs)]
    catalog = PlainCatalog(tmp_path)
    table = pa.Table.from_pylist(rows, schema=SCHEMA.as_arrow())
    catalog.create(SCHEMA, {"format-version": "2"}, table)
    return catalog


def test_several_columns_are_compared_together(catalog: PlainCatalog, connector: Connector) -> None:
    delete_by_value(
        connector,
        [{"a": 0, "b": "x"}, {"a": 1, "b": None}, {"a": None, "b": "y"}, {"a": 7, "b": "x"}],
        *("a", "b"),
    )

    left = [n for n in range(12) if n not in (0, 5, 10)]
    assert live_ids(connector) == left
    # Newer rows are not deleted.
    new = pa.Table.from_pylist([{"id": 12, "a": 0, "b": "x"}], SCHEMA.as_arrow())
    catalog.library().load_table(("db", "t")).append(new)
    assert live_ids(connector) == [*left, 12]


def test_files_with_several_sets_of_columns(connector: Connector) -> None:
    delete_by_value(connector, [{"a": 0, "b": "x"}], "a", "b")
    delete_by_value(connector, [{"a": 2, "b": "y"}], "a", "b")
    delete_by_value(connector, [{"b": None}], "b")
    delete_by_value(connector, [], "a")

    assert live_ids(connector) == [1, 3, 4, 6, 9, 10]


def test_columns_that_were_renamed_dropped_added_and_widened(connector: Connector) -> None:
    delete_by_value(connector, [{"a": 0}], "a")
    table = pinned_table(connector.metadata.load_table(NAME)).table
    with table.update_schema() as change:
        change.add_column("late", StringType())
        change.rename_column("b", "c")
        change.update_column("a", LongType())
    delete_by_value(connector, [{"a": 1, "c": "x", "late": None}], "a", "c", "late")
    delete_by_value(connector, [{"late": "x"}], "late")
    table = pinned_table(connector.metadata.load_table(NAME)).table
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("a")
        change.rename_column("c", "a")
    delete_by_value(connector, [{"a": "y"}], "a")

    assert live_ids(connector) == [5, 6, 8, 9, 11]


def test_a_file_of_deletes_without_its_column(connector: Connector) -> None:
    delete_by_value(connector, [{"a": 0}], "a")
    pinned = pinned_table(connector.metadata.load_table(NAME))
    (file,) = pinned.files
    path = pinned.storage.path(file.equality_deletes[0].path)
    schema = SCHEMA.select("b").as_arrow()
    pq.write_table(pa.Table.from_pylist([{"b": "x"}], schema=schema), path)

    with pytest.raises(CatalogError, match="it has no column a"):
        live_ids(connector)
