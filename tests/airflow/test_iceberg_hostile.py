"""Damaged and hostile metadata of Iceberg tables: typed errors, in bounded time and memory."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog

from airflow_provider_merge.hooks.iceberg import IcebergHook
from airflow_provider_merge.metadata.iceberg import files
from airflow_provider_merge.storage.failures import reaching
from spark_jobs.errors import CatalogError, ErrorCode, JobError
from tests.airflow.test_iceberg_tables import DAY
from tests.support.iceberg_tables import IcebergTable
from tests.support.small_server import serving

TABLE = "shop.orders"


@pytest.fixture
def orders(iceberg_catalog: Catalog) -> IcebergTable:
    table = IcebergTable.create(iceberg_catalog)
    table.append(DAY, "Oslo", rows=5)
    table.mark(DAY, "Oslo", rows=2, of=table.paths()[0])
    return table


def read_all() -> None:
    """All that a hook reads of the table, as its methods do."""
    table = IcebergHook().table(TABLE)
    with reaching(table.location):
        latest = table.latest()
        table.history(latest)
        table.schema()
        table.partitions()
        table.partitions({"ts_day": "2026-01-31", "city": "Oslo"})
        table.row_count()
        if latest:
            table.touched(latest)


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content with a few other bytes, cut off, or with a part twice."""
    place = chance.randrange(len(content))
    kind = chance.randrange(3)
    if kind == 0:
        changed = bytearray(content)
        for _ in range(chance.randint(1, 8)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        return bytes(changed)
    return content[:place] if kind == 1 else content[:place] + content[place // 2 :]


@pytest.mark.parametrize("pattern", ["*.metadata.json", "snap-*.avro", "*-m0.avro"])
def test_damaged_files(orders: IcebergTable, pattern: str) -> None:
    read_all()
    folder = Path(orders.table.location(), "metadata")
    newest = Path(orders.table.metadata_location.removeprefix("file://"))
    paths = [newest] if pattern.endswith("json") else sorted(folder.glob(pattern))
    outcomes = set()
    for seed in range(150):
        chance = random.Random(seed)
        path = chance.choice(paths)
        content = path.read_bytes()
        path.write_bytes(damaged(content, chance))
        try:
            read_all()
            outcomes.add("read")
        except JobError as error:
            outcomes.add(error.code.name)
        finally:
            path.write_bytes(content)
    read_all()
    # A name of a file or of a codec may have become another one, and a snapshot may be lost in the
    # metadata.
    known = {"read", "METADATA_UNREADABLE", "STORAGE_UNAVAILABLE", "REQUEST_INVALID"}
    assert outcomes <= {*known, "NOT_SUPPORTED"}
    assert "METADATA_UNREADABLE" in outcomes


def rewritten(orders: IcebergTable, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the newest metadata of the table."""
    path = Path(orders.table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_parents_in_a_circle(orders: IcebergTable) -> None:
    def change(document: dict[str, Any]) -> None:
        first, second = document["snapshots"]
        first["parent-snapshot-id"] = second["snapshot-id"]

    rewritten(orders, change)
    assert len(IcebergHook().snapshots(TABLE)) == 2
    read_all()


def leading_to(orders: IcebergTable, place: str) -> None:
    """Let the newest snapshot name this list of manifests."""
    newest = orders.head

    def change(document: dict[str, Any]) -> None:
        for each in document["snapshots"]:
            if each["snapshot-id"] == newest:
                each["manifest-list"] = place

    rewritten(orders, change)


def test_metadata_leads_to_no_server(orders: IcebergTable) -> None:
    asked = []

    def answer(path: str) -> tuple[int, bytes]:
        asked.append(path)
        return 200, b"found"

    with serving(answer) as server:
        leading_to(orders, f"{server}/latest/meta-data")
        with pytest.raises(CatalogError, match="not on the storage of its table") as error:
            read_all()
        rewritten(orders, lambda each: each.update({"location": f"{server}/table"}))
        with pytest.raises(CatalogError, match="not on the storage of its table"):
            read_all()
    assert (error.value.code, asked) == (ErrorCode.METADATA_UNREADABLE, [])


@pytest.mark.parametrize(
    "place",
    [
        "s3://another/list.avro",
        "hdfs://name:8020/list.avro",
        "memory://list.avro",
        "file://another-host/list.avro",
        "list.avro",
        "/warehouse/../../etc/passwd",
    ],
)
def test_metadata_leads_to_no_other_store(orders: IcebergTable, place: str) -> None:
    leading_to(orders, place)
    with pytest.raises(CatalogError, match="not on the storage of its table") as error:
        read_all()
    assert error.value.code is ErrorCode.METADATA_UNREADABLE


def test_files_of_a_table_in_a_bucket_are_in_that_bucket() -> None:
    files_of_table = files.StorageFiles({}).of_table("s3a://lake/db/t", "s3://lake/db/t/metadata")
    assert files_of_table.options("s3n://lake/elsewhere/list.avro")
    for place in ("s3://other/list.avro", "/proc/self/environ", "file:///proc/self/environ"):
        with pytest.raises(CatalogError, match="not on the storage of its table"):
            files_of_table.read(place)


def test_a_pipe_is_not_waited_for(orders: IcebergTable, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "list.avro")
    leading_to(orders, str(tmp_path / "list.avro"))
    with pytest.raises(CatalogError, match="not a regular file") as error:
        read_all()
    assert error.value.code is ErrorCode.METADATA_UNREADABLE


def test_names_of_classes_in_properties(orders: IcebergTable) -> None:
    rewritten(orders, lambda each: each["properties"].update({"py-io-impl": "os.system"}))
    read_all()


@pytest.mark.parametrize("is_packed", [False, True])
def test_metadata_that_is_too_large(
    orders: IcebergTable, monkeypatch: pytest.MonkeyPatch, is_packed: bool
) -> None:
    monkeypatch.setattr(files, "MAX_FILE", 100_000)
    path = Path(orders.table.metadata_location.removeprefix("file://"))
    content = path.read_bytes()
    if not is_packed:
        path.write_bytes(content + b" " * 100_000)
    else:
        place = path.with_name("1.gz.metadata.json")
        place.write_bytes(gzip.compress(content))
        orders.catalog.drop_table(orders.identifier)
        orders.catalog.register_table(orders.identifier, str(place))
        read_all()
        place.write_bytes(gzip.compress(content + b" " * 10_000_000))
    with pytest.raises(CatalogError, match="larger than 100000 bytes") as error:
        read_all()
    assert error.value.code is ErrorCode.METADATA_UNREADABLE
