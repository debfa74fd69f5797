"""Tables with fixed buckets as the engine and the sink see them; those that are refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.errors import NotSupportedError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.connectors.paimon.test_load_table import edit_schema, set_option
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    begin,
    change_rows,
    create,
    inserts,
    merge,
    read,
    store,
)

COLUMNS = {"id": "int", "name": "string", "p": "int", "deep": "array<int>"}
BUCKETS = {"bucket": "4", "bucket-key": "name, id"}
VALUES = [{"id": i, "name": f"name {i}", "p": i % 2} for i in range(80)]


@pytest.fixture
def table(connector: Connector) -> TableHandle:
    return create(connector, COLUMNS, ["p"], BUCKETS)


def places(connector: Connector) -> set[tuple[int | None, int, str]]:
    """Partition, bucket, and directory of every file."""
    located = connector.metadata.load_table(NAME).native.files.located_entries
    return {
        (entry.partition.values[0], entry.bucket, "/".join(path.split("/")[-3:-1]))
        for path, entry in located
    }


def test_the_layout_clusters_by_the_bucket_of_the_key(
    connector: Connector, table: TableHandle
) -> None:
    layout = connector.metadata.insert_layout(table)

    assert layout.cluster_by == layout.order_by == ("p", "__merge_bucket")
    assert layout.deciding_columns >= {"p", "name", "id"}
    assert "deep" not in layout.deciding_columns
    derived = pickle.loads(pickle.dumps(layout.derived))
    assert (derived.inputs, derived.columns) == (("name", "id"), (("__merge_bucket", "int"),))
    (buckets,) = derived.function(change_rows(table, rows.INSERT, VALUES).select(["name", "id"]))
    assert set(buckets.to_pylist()) == {0, 1, 2, 3}


def test_new_files_lie_where_pypaimon_puts_them(connector: Connector, table: TableHandle) -> None:
    append_with_pypaimon(table, VALUES)
    before = places(connector)

    append(connector, VALUES)

    assert places(connector) == before
    assert len(before) == 8
    assert len(connector.metadata.load_table(NAME).native.files.located_entries) == 16
    assert len(read(connector)) == 160


def test_files_hold_rows_of_one_bucket_each(connector: Connector, table: TableHandle) -> None:
    fragments = store(begin(connector, table), inserts(table, VALUES))

    added = [fragment.document["added"] for fragment in fragments]
    assert len({(tuple(each["partition"]), each["bucket"]) for each in added}) == len(added) == 8
    assert all(Path(each["path"]).parent.name == f"bucket-{each['bucket']}" for each in added)


def test_a_rewritten_file_stays_in_its_bucket(connector: Connector, table: TableHandle) -> None:
    append(connector, VALUES)
    before = places(connector)
    loaded = connector.metadata.load_table(NAME)
    numbers = sequence_numbers(loaded)

    deletes = [{"file": file, "position": 0} for file in range(8)]
    merge(connector, loaded, change_rows(loaded, rows.DELETE, deletes), operation_id="delete")

    assert places(connector) == before
    assert sequence_numbers(connector.metadata.load_table(NAME)) == numbers
    assert len(read(connector)) == 72


def sequence_numbers(table: TableHandle) -> list[Any]:
    return sorted(
        (*entry.partition.values, entry.bucket, file.min_sequence_number, file.max_sequence_number)
        for file, entry in ((e.file, e) for _, e in table.native.files.located_entries)
    )


def test_a_table_whose_number_of_buckets_was_changed_is_refused(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    append(connector, VALUES)
    edit_schema(warehouse, set_option("bucket", "8"))
    rescaled = connector.metadata.load_table(NAME)

    with pytest.raises(
        NotSupportedError, match=r"now has 8 buckets .* is one of 4 buckets"
    ) as raised:
        connector.metadata.require_writable(rescaled)

    assert "INSERT OVERWRITE" in raised.value.remedy
    assert len(connector.metadata.plan_files(rescaled)) == 8


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("bucket-function.type", "mod", "bucket-function.type = mod"),
        ("bucket-key", "id,missing", "Bucket key missing .* is not a column"),
        ("bucket-key", "id,p", "Bucket key p .* is a partition key too"),
        ("bucket-key", "deep", "Bucket key deep .* has the nested type ARRAY"),
        ("bucket-key", " ", "no bucket key"),
    ],
)
def test_buckets_that_are_not_hashed_here_are_refused(
    connector: Connector, warehouse: Path, table: TableHandle, option: str, value: str, reason: str
) -> None:
    edit_schema(warehouse, set_option(option, value))

    with pytest.raises(NotSupportedError, match=reason) as raised:
        connector.metadata.require_writable(connector.metadata.load_table(NAME))

    assert raised.value.remedy
