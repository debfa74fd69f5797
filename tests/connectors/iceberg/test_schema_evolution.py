"""A statement's columns and its rows become visible in one commit, whatever the catalog answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import create_mapping_from_schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import (
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.alterations import SchemaChange
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.answers import answering, lost_answer, lost_request, refused
from tests.connectors.iceberg.direct import DirectWrite, found
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog

MORE = SchemaChange(("more",), "STRING")
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "s", StringType()),
    NestedField(3, "n", IntegerType()),
    NestedField(4, "f", FloatType()),
    NestedField(5, "amount", DecimalType(9, 2)),
    NestedField(6, "day", DateType()),
    NestedField(7, "point", StructType(NestedField(10, "x", IntegerType()))),
    NestedField(8, "points", ListType(11, StructType(NestedField(12, "x", IntegerType())))),
    NestedField(
        9, "named", MapType(13, StringType(), 14, StructType(NestedField(15, "x", IntegerType())))
    ),
    identifier_field_ids=[1],
)
LAST_ID = 15
OLD = {
    "id": 1,
    "s": "old",
    "n": 1,
    "f": 0.5,
    "amount": None,
    "day": None,
    "point": {"x": 1},
    "points": [{"x": 1}],
    "named": [("a", {"x": 1})],
}


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    made = PlainCatalog(tmp_path)
    made.create(SCHEMA, {"format-version": "2"}, rows(made, OLD))
    return made


def rows(catalog: PlainCatalog, *found: dict[str, Any]) -> pa.Table:
    del catalog
    return pa.Table.from_pylist(list(found), schema=SCHEMA.as_arrow())


def library_table(catalog: PlainCatalog) -> Any:
    return catalog.library().load_table(("db", "t"))


def read(catalog: PlainCatalog, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns, as pyiceberg reads them, in the order of the ids."""
    found = library_table(catalog).scan().to_arrow().sort_by("id").to_pylist()
    return [tuple(row[each] for each in columns) for row in found]


def states(catalog: PlainCatalog) -> list[tuple[bool, int]]:
    """Whether each stored state of the table has the column ``more``, and how many snapshots."""
    stored = sorted(catalog.folder.rglob("*.metadata.json"), key=lambda each: each.name)
    found = []
    for document in (json.loads(each.read_text()) for each in stored):
        schemas = {each["schema-id"]: each for each in document["schemas"]}
        fields = schemas[document["current-schema-id"]]["fields"]
        found.append(("more" in [each["name"] for each in fields], len(document["snapshots"])))
    return found


def new_row(**values: Any) -> dict[str, Any]:
    return {**OLD, "id": 2, **values}


def evolved(connector: Connector, *changes: SchemaChange) -> Any:
    return connector.metadata.evolved(connector.metadata.load_table(NAME), changes)


def failure(action: Callable[[], object]) -> JobError:
    with pytest.raises(JobError) as raised:
        action()
    return raised.value


def test_nothing_is_stored_before_the_write_is_published(
    catalog: PlainCatalog, connector: Connector
) -> None:
    wider = evolved(connector, MORE)
    assert wider.added_columns == ("more",)
    assert wider.column_names[-1] == "more"
    write = DirectWrite(connector, changes=[MORE]).insert(new_row(more="new"))
    assert states(catalog) == [(False, 0), (False, 1)]
    write.abort()
    assert states(catalog) == [(False, 0), (False, 1)]


@pytest.mark.parametrize("answer", [None, lost_answer, lost_request, refused])
def test_columns_and_rows_appear_together(
    catalog: PlainCatalog,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[Any], Any] | None,
) -> None:
    write = DirectWrite(connector, changes=[MORE])
    write.update(0, 0, "changed").insert(new_row(more="new"))
    answering(connector, monkeypatch, *[answer] * (0 if answer is None else 2))

    committed = write.publish()

    assert states(catalog) == [(False, 0), (False, 1), (True, 2)]
    table = library_table(catalog)
    assert table.schema().find_field("more").field_id == LAST_ID + 1
    assert table.schema().identifier_field_ids == [1]
    assert table.current_snapshot().schema_id == table.schema().schema_id
    assert read(catalog, "id", "s", "more") == [(1, "changed", None), (2, "old", "new")]
    assert found(catalog.open(), write.operation_id) == committed


def test_others_commit_meanwhile(catalog: PlainCatalog, connector: Connector) -> None:
    write = DirectWrite(connector, changes=[MORE], isolation="snapshot")
    write.insert(new_row(more="new"))
    library_table(catalog).append(rows(catalog, {**OLD, "id": 3}))

    write.publish()

    assert read(catalog, "id", "more") == [(1, None), (2, "new"), (3, None)]


@pytest.mark.parametrize(
    "theirs",
    [
        lambda update: update.add_column("other", StringType()),
        lambda update: update.add_column("more", StringType()),
        lambda update: update.rename_column("s", "t"),
        lambda update: update.delete_column("n"),
    ],
    ids=["another column", "the same column", "renamed", "dropped"],
)
@pytest.mark.parametrize("has_rows", [True, False])
def test_another_writer_changes_the_columns(
    catalog: PlainCatalog, connector: Connector, theirs: Callable[[Any], Any], has_rows: bool
) -> None:
    write = DirectWrite(connector, changes=[MORE]).insert(new_row(more="new"))
    with library_table(catalog).update_schema() as update:
        theirs(update)
    columns = library_table(catalog).schema().column_names

    def store() -> object:
        return write.publish() if has_rows else connector.writes.store_schema(write.table)

    if not has_rows and "more" in columns:
        store()  # It has what is wanted.
    else:
        assert failure(store).code is ErrorCode.COMMIT_CONFLICT
    assert library_table(catalog).schema().column_names == columns
    assert read(catalog, "id") == [(1,)]


def test_a_column_that_came_and_went(catalog: PlainCatalog, connector: Connector) -> None:
    write = DirectWrite(connector, changes=[MORE]).insert(new_row(more="new"))
    with library_table(catalog).update_schema() as update:
        update.add_column("other", StringType())
    with library_table(catalog).update_schema() as update:
        update.delete_column("other")

    # The new files' column has the id of the one that is gone.
    assert failure(write.publish).code is ErrorCode.COMMIT_CONFLICT


@pytest.mark.parametrize("answer", [None, lost_answer, lost_request, refused])
def test_columns_without_rows(
    catalog: PlainCatalog,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[Any], Any] | None,
) -> None:
    table = connector.metadata.load_table(NAME)
    wider = evolved(connector, MORE)
    answering(connector, monkeypatch, *[answer] * (0 if answer is None else 2))

    connector.writes.store_schema(wider)
    connector.writes.store_schema(wider)
    connector.writes.store_schema(table)

    assert states(catalog) == [(False, 0), (False, 1), (True, 1)]
    assert read(catalog, "id", "more") == [(1, None)]


def test_a_column_that_was_dropped_is_a_new_one(catalog: PlainCatalog) -> None:
    with library_table(catalog).update_schema() as update:
        update.delete_column("n")
    DirectWrite(catalog.open(), changes=[SchemaChange(("n",), "INT")]).insert(
        {name: value for name, value in new_row().items() if name != "n"} | {"n": 7}
    ).publish()

    assert read(catalog, "id", "n") == [(1, None), (2, 7)]


@pytest.mark.parametrize(
    ("change", "stored"),
    [
        (SchemaChange(("n",), "BIGINT", "INT"), {"n": 2**40}),
        (SchemaChange(("f",), "DOUBLE", "FLOAT"), {"f": 0.1}),
        (SchemaChange(("point", "x"), "BIGINT", "INT"), {"point": {"x": 2**40}}),
        (SchemaChange(("points", "element", "x"), "BIGINT", "INT"), {"points": [{"x": 2**40}]}),
        (SchemaChange(("named", "value", "x"), "BIGINT", "INT"), {"named": [("b", {"x": 2**40})]}),
        (SchemaChange(("point", "y"), "STRING"), {"point": {"x": 1, "y": "new"}}),
        (SchemaChange(("points", "element", "y"), "INT"), {"points": [{"x": 1, "y": 5}]}),
        (SchemaChange(("named", "value", "y"), "INT"), {"named": [("b", {"x": 1, "y": 5})]}),
        (SchemaChange(("a.b",), "DATE"), {"a.b": None}),
        (SchemaChange(("small",), "SMALLINT"), {"small": 5}),
        (SchemaChange(("more",), "ARRAY<STRUCT<a: TINYINT>>"), {"more": [{"a": 5}]}),
    ],
    ids=str,
)
def test_changes_of_columns(
    catalog: PlainCatalog, connector: Connector, change: SchemaChange, stored: dict[str, Any]
) -> None:
    ((name, value),) = stored.items()
    write = DirectWrite(connector, changes=[change])
    write.update(0, 0, "changed").insert(new_row(**stored))

    write.publish()

    old, new = read(catalog, "s", name)
    assert old[0] == "changed"
    assert new[1] == value
    ids = [each.field_id for each in library_table(catalog).schema()._lazy_id_to_field.values()]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (SchemaChange(("n",), "DECIMAL(10,0)", "INT"), "n: int -> decimal"),
        (SchemaChange(("n",), "DOUBLE", "INT"), "n: int -> double"),
        (SchemaChange(("named", "key"), "INT", "STRING"), "named.key"),
        (SchemaChange(("more",), "VARIANT"), "more has the type VARIANT"),
        (SchemaChange(("__merge_more",), "INT"), "__merge_"),
        (SchemaChange(("id",), "DECIMAL(20,0)", "BIGINT"), "id of db.t is an identifier column"),
    ],
    ids=str,
)
def test_what_iceberg_does_not_allow(
    catalog: PlainCatalog, connector: Connector, change: SchemaChange, says: str
) -> None:
    error = failure(lambda: evolved(connector, change))

    assert error.code is ErrorCode.NOT_SUPPORTED
    assert says in error.message
    assert states(catalog) == [(False, 0), (False, 1)]


def test_partition_columns_stay(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    spec = PartitionSpec(
        PartitionField(3, 1000, IdentityTransform(), "n"),
        PartitionField(6, 1001, DayTransform(), "day_day"),
    )
    opened = catalog.library()
    opened.create_namespace("db")
    opened.create_table(("db", "t"), SCHEMA, partition_spec=spec)
    connector = catalog.open()

    widened = failure(lambda: evolved(connector, SchemaChange(("n",), "BIGINT", "INT")))
    named = failure(lambda: evolved(connector, SchemaChange(("day_day",), "INT")))

    assert "is a partition column" in widened.message
    assert "day_day" in named.message


def test_files_without_ids_are_read_by_the_new_names(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    mapping = create_mapping_from_schema(SCHEMA).model_dump_json()
    catalog.create(SCHEMA, {"schema.name-mapping.default": mapping}, rows(catalog, OLD))

    DirectWrite(catalog.open(), changes=[MORE]).insert(new_row(more="new")).publish()

    found: Sequence[Any] = json.loads(
        library_table(catalog).properties["schema.name-mapping.default"]
    )
    assert found[-1] == {"field-id": LAST_ID + 1, "names": ["more"]}


def test_tables_of_version_1(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    catalog.create(SCHEMA, {"format-version": "1"}, rows(catalog, OLD))

    DirectWrite(catalog.open(), changes=[MORE]).insert(new_row(more="new")).publish()

    assert read(catalog, "id", "more") == [(1, None), (2, "new")]
