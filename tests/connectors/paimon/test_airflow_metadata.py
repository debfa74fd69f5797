"""What the Airflow side reads of tables' metadata is what pypaimon finds by reading the tables."""

from __future__ import annotations

import time
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pypaimon import CatalogFactory, Schema

from airflow_provider_merge.metadata.avro import records
from airflow_provider_merge.metadata.paimon.manifests import MAX_MANIFEST
from airflow_provider_merge.metadata.paimon.partition_filter import typed_value
from airflow_provider_merge.metadata.paimon.table import PaimonTable
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, JobError, RequestError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from tests.fuzz.binary_mutations import hostile_avro
from tests.fuzz.mutations import damaged_bytes
from tests.support import paimon_tables

pytestmark = pytest.mark.slow

DAMAGED = (ErrorCode.METADATA_UNREADABLE, ErrorCode.NOT_SUPPORTED)
LONG = "a name of more than seven bytes"
PARTITIONS = {
    "STRING": ["a", "", LONG, "x=y/z", None],
    "BIGINT": [-(2**63), 0, 2**63 - 1, None],
    "INT": [-5, 7],
    "SMALLINT": [-3, 300],
    "TINYINT": [-128, 1],
    "BOOLEAN": [True, False, None],
    "FLOAT": [12.3, -0.001, 9999999.0, 0.0, None],
    "DOUBLE": [12.3, -0.001, 9999999.999999998, 0.0, None],
    "DATE": [date(1969, 12, 31), date(2026, 1, 31), None],
    "TIMESTAMP_NTZ": [datetime(2026, 1, 31, 12, 30, 15, 250), datetime(1960, 1, 1)],  # noqa: DTZ001
    "DECIMAL(10, 2)": [Decimal("-12.50"), Decimal("0.00"), None],
    "DECIMAL(30, 2)": [Decimal("-123456789012345678901.25"), Decimal("1.00")],
}


def open_table(warehouse: Path, name: TableName = paimon_tables.NAME) -> PaimonTable:
    return PaimonTable.find(str(warehouse), name, {})


def found_by_reading(connector: Connector, name: TableName, keys: list[str]) -> Counter:
    return Counter(tuple(row[key] for key in keys) for row in paimon_tables.read(connector, name))


def files_of_pypaimon(
    connector: Connector, name: TableName = paimon_tables.NAME
) -> tuple[int, int]:
    """Number and bytes of all live files."""
    table = connector.metadata.load_table(name).native.table
    splits = table.new_read_builder().new_scan().plan().splits()
    files = [file for split in splits for file in split.files]
    return len(files), sum(file.file_size for file in files)


@pytest.mark.parametrize("kind", PARTITIONS)
def test_partitions_of_every_type(connector: Connector, warehouse: Path, kind: str) -> None:
    values = PARTITIONS[kind]
    paimon_tables.create(connector, {"id": "BIGINT", "k": kind}, ["k"])
    paimon_tables.append(connector, [{"id": i, "k": k} for i, k in enumerate(values)])
    paimon_tables.append(connector, [{"id": i, "k": k} for i, k in enumerate(values[1:])], "second")
    table = open_table(warehouse)

    found = table.partitions()

    expected = found_by_reading(connector, paimon_tables.NAME, ["k"])
    assert len(found) == len(values)
    for (value,), count in expected.items():
        (one,) = table.partitions({"K": value})
        assert one.rows == one.records == count
        text = one.values["k"]
        assert (text is None) is (value is None)
        assert table.partitions({"k": text}) == [one], "text and value mean the same"
        assert one in found
    assert files_of_pypaimon(connector) == (
        sum(each.files for each in found),
        sum(each.size for each in found),
    )
    assert table.row_count() == sum(expected.values())


KINDS = {
    "append": {},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "fixed buckets": {"bucket": "2", "bucket-key": "id"},
    "buckets with deletion vectors": {
        "bucket": "2",
        "bucket-key": "id",
        "deletion-vectors.enabled": "true",
    },
    "deflated manifests": {"manifest.compression": "deflate"},
    "plain manifests": {"manifest.compression": "null"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_every_kind_after_deletes(
    connector: Connector, warehouse: Path, kind: str
) -> None:
    paimon_tables.create(connector, {"id": "BIGINT", "k": "STRING"}, ["k"], KINDS[kind])
    for start in (0, 100):
        values = [{"id": i, "k": "ab"[i % 2]} for i in range(start, start + 100)]
        paimon_tables.append(connector, values, f"append-{start}")
    table = connector.metadata.load_table(paimon_tables.NAME)
    gone = [{"file": 0, "position": position} for position in (1, 3, 4)]
    paimon_tables.merge(connector, table, paimon_tables.change_rows(table, rows.DELETE, gone))
    reader = open_table(warehouse)

    found = {each.values["k"]: each.rows for each in reader.partitions()}

    expected = found_by_reading(connector, paimon_tables.NAME, ["k"])
    assert found == {key: count for (key,), count in expected.items()}
    assert sum(found.values()) == 197
    latest, before = reader.latest(), reader.snapshots.snapshot(2)
    assert latest is not None
    assert before is not None
    (touched,) = reader.touched(latest)
    (change,) = reader.diff(before, latest)
    assert change.values == touched
    assert change.rows_before == 100
    assert change.rows_after == 97


def test_a_table_with_keys_tells_rows_only_when_it_is_compacted(
    connector: Connector, warehouse: Path
) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())])
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("shop", True)
    options = {"bucket": "1"}
    keyed = Schema.from_pyarrow_schema(schema, primary_keys=["id"], options=options)
    catalog.create_table(str(paimon_tables.NAME), keyed, False)
    write(catalog.get_table(str(paimon_tables.NAME)), {"id": [1, 2], "n": [1, 2]}, schema)
    write(catalog.get_table(str(paimon_tables.NAME)), {"id": [2], "n": [3]}, schema)
    table = open_table(warehouse)

    (facts,) = table.partitions()

    assert (facts.rows, facts.records, facts.files) == (None, 3, 2)
    assert table.row_count() is None
    assert table.schema().primary_keys == ("id",)


def test_columns_of_the_same_rows_in_several_files(warehouse: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("shop", True)
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    catalog.create_table(
        str(paimon_tables.NAME), Schema.from_pyarrow_schema(schema, options=options), False
    )
    table = catalog.get_table(str(paimon_tables.NAME))
    write(table, {"id": [1, 2, 3], "n": [1, 2, 3]}, schema)
    builder = table.new_batch_write_builder()
    update = builder.new_update().with_update_type(["n"])
    changed = pa.table(
        {"_ROW_ID": [0, 1, 2], "n": [7, 8, 9]},
        pa.schema([("_ROW_ID", pa.int64()), ("n", pa.int64())]),
    )
    commit = builder.new_commit()
    commit.commit(update.update_by_arrow_with_row_id(changed))
    commit.close()

    (facts,) = open_table(warehouse).partitions()

    assert (facts.rows, facts.records, facts.files) == (3, 6, 2)


def write(table, values, schema) -> None:
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(pa.table(values, schema))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def test_tags_and_branches(connector: Connector, warehouse: Path) -> None:
    handle = paimon_tables.create(connector, {"id": "BIGINT"})
    paimon_tables.append(connector, [{"id": 1}])
    native = handle.native.table
    native.create_tag("daily 2026-01-31", 1)
    native.branch_manager().create_branch("b", "daily 2026-01-31")
    paimon_tables.append(connector, [{"id": 2}], "second")
    table = open_table(warehouse)

    tag = table.tag("daily 2026-01-31")
    branch = open_table(warehouse, TableName("shop", "orders$branch_b"))

    assert table.tags() == ["daily 2026-01-31"]
    assert tag is not None
    assert tag.snapshot == table.snapshots.snapshot(1)
    assert table.tag("other") is None
    assert table.row_count(tag.snapshot) == 1
    assert table.branches() == ["b"]
    assert (table.row_count(), branch.row_count()) == (2, 1)
    assert branch.schema().columns == table.schema().columns


def test_tables_without_data_and_without_a_table(connector: Connector, warehouse: Path) -> None:
    paimon_tables.create(connector, {"id": "BIGINT", "k": "STRING"}, ["k"])
    table = open_table(warehouse)

    assert (table.latest(), table.partitions(), table.row_count()) == (None, [], 0)
    with pytest.raises(CatalogError, match=r"no table shop\.nothing at") as error:
        open_table(warehouse, TableName("shop", "nothing"))
    assert error.value.code is ErrorCode.TABLE_NOT_FOUND


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"day": "2026-01-31"}, "'day' is not a partition column of the table.*columns: k, n"),
        ({"n": "seven"}, "n: 'seven' is not a valid INT"),
    ],
)
def test_wrong_partitions(
    connector: Connector, warehouse: Path, wanted: dict[str, str], message: str
) -> None:
    paimon_tables.create(connector, {"id": "BIGINT", "k": "STRING", "n": "INT"}, ["k", "n"])
    paimon_tables.append(connector, [{"id": 1, "k": "a", "n": 1}])
    with pytest.raises(RequestError, match=message):
        open_table(warehouse).partitions(wanted)


def test_a_time_with_an_offset(connector: Connector, warehouse: Path) -> None:
    """``data_interval_start`` of a template has one."""
    paimon_tables.create(connector, {"id": "BIGINT", "k": "TIMESTAMP_NTZ"}, ["k"])
    paimon_tables.append(connector, [{"id": 1, "k": datetime(2026, 1, 31, 5)}])  # noqa: DTZ001
    table = open_table(warehouse)
    assert len(table.partitions({"k": "2026-01-31T05:00:00"})) == 1
    with pytest.raises(
        RequestError, match=r"k: '2026-01-31 05:00:00\+00:00' is not a valid TIMESTAMP"
    ):
        table.partitions({"k": "2026-01-31 05:00:00+00:00"})


@pytest.mark.parametrize("kind", ["TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)"])
def test_a_point_in_time_is_stored_in_utc(kind: str) -> None:
    stored = datetime(2026, 1, 31, 5)  # noqa: DTZ001
    for given in ("2026-01-31 07:00:00+02:00", "2026-01-31T05:00:00", stored):
        assert typed_value(given, kind) == stored


def test_a_schema_of_nested_types(connector: Connector, warehouse: Path) -> None:
    kinds = {"a": "ARRAY<STRING>", "m": "MAP<STRING, INT>", "s": "STRUCT<x: INT, y: ARRAY<DATE>>"}
    paimon_tables.create(connector, kinds)

    columns = open_table(warehouse).schema().columns

    assert [(c.name, c.type) for c in columns] == [
        ("a", "ARRAY<STRING>"),
        ("m", "MAP<STRING NOT NULL, INT>"),
        ("s", "ROW<x INT, y ARRAY<DATE>>"),
    ]


def error_of(table: PaimonTable) -> JobError | None:
    try:
        table.partitions({"k": "a"})
    except JobError as error:
        return error
    return None


def test_damaged_and_hostile_manifests(connector: Connector, warehouse: Path) -> None:
    marking = {"deletion-vectors.enabled": "true"}
    paimon_tables.create(connector, {"id": "BIGINT", "k": "STRING"}, ["k"], marking)
    paimon_tables.append(connector, [{"id": i, "k": "ab"[i % 2]} for i in range(100)])
    handle = connector.metadata.load_table(paimon_tables.NAME)
    gone = [{"file": 0, "position": 1}]
    paimon_tables.merge(connector, handle, paimon_tables.change_rows(handle, rows.DELETE, gone))
    table = open_table(warehouse)
    files = sorted(path for path in warehouse.rglob("manifest/*"))
    outcomes: Counter[str] = Counter()

    for seed in range(600):
        random = Random(seed)
        path = random.choice(files)
        content = path.read_bytes()
        path.write_bytes(random.choice((damaged_bytes, hostile_avro))(content, random))
        started = time.process_time()
        try:
            error = error_of(table)
        except Exception as other:
            raise AssertionError(f"seed {seed}, {path}") from other
        outcomes["read" if error is None else "refused"] += 1
        assert error is None or error.code in DAMAGED, seed
        assert len(str(error)) < 2000
        assert time.process_time() - started < 5, seed
        path.write_bytes(content)

    assert min(outcomes["read"], outcomes["refused"]) > 50


@pytest.mark.parametrize("codec", ["deflate", "zstandard"])
def test_a_block_that_would_fill_the_memory(codec: str) -> None:
    import io

    import fastavro

    bomb = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "b", "type": "bytes"}]}
    content = b"\0" * (2 * MAX_MANIFEST)
    fastavro.writer(bomb, schema, [{"b": content}], codec=codec)

    with pytest.raises(ValueError, match="has more than"):
        list(records(bomb.getvalue(), {"b": None}))


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "array", "items": "null"},
        {"type": "record", "name": "empty", "fields": []},
        {"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}},
        ["null", "r"],
    ],
)
def test_schemas_of_values_without_room(kind: object) -> None:
    import io
    import json

    import fastavro

    plain = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "b", "type": "bytes"}]}
    fastavro.writer(plain, schema, [{"b": b"1"}])
    content = plain.getvalue()
    hostile = {**schema, "fields": [{"name": "b", "type": kind}]}
    start = content.index(b"avro.schema") + len(b"avro.schema")
    end = content.index(b"\x00", start)
    document = json.dumps(hostile).encode()
    size = io.BytesIO()
    fastavro.schemaless_writer(size, "bytes", document)
    content = content[:start] + size.getvalue() + content[end:]

    with pytest.raises(ValueError, match=r"no room|holds itself"):
        list(records(content, {"b": None}))
