"""Creating tables: idempotent, with every difference to an existing table listed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import ErrorCode, JobError, NotSupportedError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import Column
from tests.support.paimon_tables import NAME

SPEC = CreateTableSpec(
    columns=(
        ColumnSpec("id", "BIGINT", nullable=False, comment="key"),
        ColumnSpec("name", "VARCHAR(20)"),
        ColumnSpec("at", "TIMESTAMP"),
        ColumnSpec("tags", "ARRAY<STRUCT<k: STRING, v: DECIMAL(10, 2)>>"),
        ColumnSpec("day", "DATE"),
    ),
    partition_keys=("DAY",),
    table_options={"file.compression": "zstd"},
    comment="All orders",
)


def test_a_new_table_has_what_was_asked_for(connector: Connector, warehouse: Path) -> None:
    assert connector.metadata.create_table(NAME, SPEC) is True

    table = connector.metadata.load_table(NAME)
    assert table.columns == (
        Column("id", "bigint", nullable=False, comment="key"),
        Column("name", "varchar(20)"),
        Column("at", "timestamp"),
        Column("tags", "array<struct<k:string,v:decimal(10,2)>>"),
        Column("day", "date"),
    )
    assert (table.partition_keys, table.snapshot_id) == (("day",), None)
    document = json.loads((warehouse / "shop.db/orders/schema/schema-0").read_text())
    assert document["comment"] == "All orders"
    assert document["options"]["file.compression"] == "zstd"


def test_field_ids_are_unique_nested_ones_included(connector: Connector, warehouse: Path) -> None:
    connector.metadata.create_table(NAME, SPEC)

    document = json.loads((warehouse / "shop.db/orders/schema/schema-0").read_text())
    nested = document["fields"][3]["type"]["element"]["fields"]
    ids = [field["id"] for field in document["fields"]] + [field["id"] for field in nested]
    assert len(set(ids)) == len(ids)
    assert document["highestFieldId"] == max(ids)


def test_the_same_table_again_changes_nothing(connector: Connector, warehouse: Path) -> None:
    connector.metadata.create_table(NAME, SPEC)
    before = sorted(path.name for path in warehouse.rglob("*"))

    assert connector.metadata.create_table(NAME, SPEC) is False
    assert sorted(path.name for path in warehouse.rglob("*")) == before


def test_options_that_were_not_asked_for_do_not_matter(connector: Connector) -> None:
    connector.metadata.create_table(NAME, SPEC)

    assert connector.metadata.create_table(NAME, replace(SPEC, table_options={})) is False


def columns(**changed: Any) -> tuple[ColumnSpec, ...]:
    return tuple(replace(c, **changed) if c.name == "name" else c for c in SPEC.columns)


@pytest.mark.parametrize(
    ("wanted", "difference"),
    [
        (replace(SPEC, columns=columns(type="STRING")), "column name is varchar(20), not string"),
        (replace(SPEC, columns=columns(nullable=False)), "column name admits NULL"),
        (
            replace(SPEC, columns=columns(comment="n")),
            "column name has no comment, not the comment 'n'",
        ),
        (replace(SPEC, columns=columns(name="title")), "column title is missing"),
        (replace(SPEC, columns=columns(name="title")), "column name was not asked for"),
        (replace(SPEC, columns=SPEC.columns[::-1]), "in the order id, name, at, tags, day"),
        (replace(SPEC, partition_keys=()), "partition keys: (day), not ()"),
        (
            replace(SPEC, table_options={"file.compression": "snappy"}),
            "option file.compression is 'zstd', not 'snappy'",
        ),
        (replace(SPEC, comment="x"), "the table has the comment 'All orders', not the comment 'x'"),
    ],
)
def test_each_difference_is_named(
    connector: Connector, wanted: CreateTableSpec, difference: str
) -> None:
    connector.metadata.create_table(NAME, SPEC)

    with pytest.raises(JobError) as raised:
        connector.metadata.create_table(NAME, wanted)

    assert raised.value.code is ErrorCode.TABLE_DIFFERS
    assert difference in raised.value.message


def test_all_differences_are_in_one_message(connector: Connector) -> None:
    connector.metadata.create_table(NAME, SPEC)
    wanted = replace(SPEC, columns=columns(type="INT", comment="n"), partition_keys=())

    with pytest.raises(JobError) as raised:
        connector.metadata.create_table(NAME, wanted)

    assert raised.value.message.count(";") == 2


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (replace(SPEC, primary_key=("id",)), "primary key"),
        (replace(SPEC, table_options={"bucket": "4"}), "no bucket key"),
        (replace(SPEC, table_options={"file.format": "csv"}), "file.format = csv"),
        (
            replace(SPEC, table_options={"deletion-vectors.bitmap64": "true"}),
            "64-bit deletion vectors",
        ),
        (replace(SPEC, columns=columns(type="INTERVAL")), "INTERVAL"),
        (replace(SPEC, columns=columns(type="BINARY"), partition_keys=("name",)), "spell"),
        (replace(SPEC, columns=columns(name="__merge_x")), "reserved"),
        (
            replace(SPEC, partition_keys=("day", "month(at)")),
            r"partition_keys: month\(at\): Paimon",
        ),
    ],
)
def test_what_could_not_be_changed_later_is_not_made(
    connector: Connector, warehouse: Path, wanted: CreateTableSpec, reason: str
) -> None:
    with pytest.raises(NotSupportedError, match=reason):
        connector.metadata.create_table(NAME, wanted)

    assert list(warehouse.iterdir()) == []


def test_keys_that_are_named_in_options(connector: Connector, warehouse: Path) -> None:
    """As Paimon's Spark writes them: TBLPROPERTIES ('primary-key' = 'day,id')."""
    options = {"primary-key": "day, ID", "partition": "day", "bucket": "1"}
    spec = replace(SPEC, partition_keys=(), table_options=options)
    assert connector.metadata.create_table(NAME, spec) is True
    assert connector.metadata.create_table(NAME, spec) is False

    document = json.loads((warehouse / "shop.db/orders/schema/schema-0").read_text())
    assert (document["primaryKeys"], document["partitionKeys"]) == (["day", "id"], ["day"])
    assert {"primary-key", "partition"} & set(document["options"]) == set()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition": "day"}, "partition_keys: the option partition names day, but there is"),
        ({"primary-key": "nothing"}, "primary_key: nothing is not a column of the table"),
    ],
)
def test_keys_in_options_that_cannot_be_used(
    connector: Connector, warehouse: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(JobError, match=message) as raised:
        connector.metadata.create_table(NAME, replace(SPEC, table_options=options))
    assert raised.value.code is ErrorCode.REQUEST_INVALID
    assert list(warehouse.iterdir()) == []
