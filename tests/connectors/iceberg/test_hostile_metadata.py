"""Whoever can write to a table can put any metadata there: it is read rightly or refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from spark_jobs.connectors.iceberg.format.deletes import decoded_vector
from spark_jobs.connectors.iceberg.table.manifests import listed_manifest
from spark_jobs.errors import CatalogError, ErrorCode, JobError, NotSupportedError
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog

ROWS = pa.table({"id": pa.array(range(50), pa.int64()), "s": [f"s{i}" for i in range(50)]})
_REFUSALS = {ErrorCode.METADATA_UNREADABLE, ErrorCode.NOT_SUPPORTED}
_ATTACKS = 150


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    return PlainCatalog(tmp_path)


def facts(catalog: PlainCatalog) -> list[tuple[object, ...]]:
    connector = catalog.open()
    table = connector.metadata.load_table(NAME)
    return [
        (each.path, each.row_count, each.size, tuple(each.ranges.items()))
        for each in connector.metadata.plan_files(table)
    ]


def local(location: str) -> Path:
    return Path(urlsplit(location).path)


@pytest.mark.parametrize("which", ["list", "manifest"])
def test_damaged_files_are_refused_or_mean_the_same(catalog: PlainCatalog, which: str) -> None:
    table = catalog.create(ROWS.schema, {}, ROWS)
    snapshot = table.current_snapshot()
    (manifest,) = snapshot.manifests(table.io)
    path = local(snapshot.manifest_list if which == "list" else manifest.manifest_path)
    whole, wanted = path.read_bytes(), facts(catalog)
    chance, refused = random.Random(which), 0
    for _ in range(_ATTACKS):
        data = bytearray(whole)
        if chance.random() < 0.3:
            data = data[: chance.randrange(len(data))]
        else:
            for _ in range(chance.choice((1, 1, 4, 30))):
                data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        try:
            found = facts(catalog)
        except JobError as error:
            assert error.code in _REFUSALS, error  # noqa: PT017 - or none is raised
            refused += 1
        else:
            # Deflated data has no checksum, so that a path may change without a trace.
            assert len(found) <= len(wanted)
    assert refused > _ATTACKS / 2


def test_a_missing_manifest(catalog: PlainCatalog) -> None:
    table = catalog.create(ROWS.schema, {}, ROWS)
    local(table.current_snapshot().manifests(table.io)[0].manifest_path).unlink()

    with pytest.raises(CatalogError) as caught:
        facts(catalog)

    assert caught.value.code is ErrorCode.METADATA_UNREADABLE


def test_damaged_table_metadata(catalog: PlainCatalog) -> None:
    table = catalog.create(ROWS.schema, {}, ROWS)
    path = local(table.metadata_location)
    for content in (b"", b"{}", b"[]", path.read_bytes()[:-9], b'{"format-version": 99}'):
        path.write_bytes(content)
        with pytest.raises(JobError) as caught:
            facts(catalog)
        assert caught.value.code in _REFUSALS, caught.value


def test_damaged_deletion_vectors() -> None:
    chance = random.Random(0)
    for _ in range(300):
        data = bytes(chance.randrange(256) for _ in range(chance.randrange(60)))
        with pytest.raises(CatalogError) as caught:
            decoded_vector(data, "file", 3)
        assert caught.value.code is ErrorCode.METADATA_UNREADABLE


def test_a_type_that_new_files_cannot_hold(catalog: PlainCatalog) -> None:
    table = catalog.create(ROWS.schema, {}, ROWS)
    path = local(table.metadata_location)
    document = json.loads(path.read_bytes())
    document["schemas"][0]["fields"][1]["type"] = "timestamp_ns"
    path.write_text(json.dumps(document))
    metadata = catalog.open().metadata
    loaded = metadata.load_table(NAME)

    assert [each.type for each in loaded.opaque_columns] == ["timestamp_ns"]
    with pytest.raises(NotSupportedError, match="has the type timestamp_ns, and new files cannot"):
        metadata.require_writable(loaded)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"uri": "postgresql://somebody:secret@nowhere/db"}, "password"),
        ({"type": "hadoop"}, "hadoop"),
        ({"s3.remote-signing-enabled": "true"}, "signing"),
    ],
)
def test_catalogs_that_are_not_opened(
    catalog: PlainCatalog, options: dict[str, str], says: str
) -> None:
    with pytest.raises(NotSupportedError, match=says) as caught:
        catalog.open(**options).metadata.load_table(NAME)

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["added_files_count", "manifest_length"])
@pytest.mark.parametrize("value", ["x", [], 1.5])
def test_a_manifest_list_with_other_types(name: str, value: object) -> None:
    record = {"manifest_path": "/m.avro", "partition_spec_id": 0, "manifest_length": 1}
    assert listed_manifest(record).path == "/m.avro"
    with pytest.raises(ValueError, match=name):
        listed_manifest({**record, name: value})
