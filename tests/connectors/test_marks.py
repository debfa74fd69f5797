"""Each landed file is applied once, whatever happens to task and table; without a JVM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.spi.tables import TableHandle
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.connectors.mark_histories import History, Lake
from tests.support.iceberg_changes import inserted
from tests.support.keyed_changes import keyed_batches, new_row
from tests.support.paimon_tables import append_with_pypaimon, create, inserts, read, snapshot_ids
from tests.support.turns import EVERYTHING

KINDS = {"append": (), "key": ("id",)}
SEEDS = range(20 if EVERYTHING else 1)
STEPS = 60 if EVERYTHING else 25


class PaimonLake(Lake):
    def __init__(self, folder: Path, key: Sequence[str]) -> None:
        self.catalog = CatalogSpec("paimon", str(folder))
        self.connector = open_connector(self.catalog, {})
        self.name = TableName("shop", "orders")
        self.folder = folder / "shop.db/orders/snapshot"
        options = {"bucket": "2"} if key else {}
        columns = {"id": "int", "s": "string"}
        create(self.connector, columns, (), options, self.name, tuple(key))
        self.is_keyed = bool(key)

    def rows(self, table: TableHandle, ids: Sequence[int]) -> pa.RecordBatch:
        values: list[dict[str, Any]] = [{"id": each, "s": "new"} for each in ids]
        if not self.is_keyed:
            return inserts(table, values)
        batches = keyed_batches(table, [new_row(each) for each in values])
        return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]

    def append(self, ids: Sequence[int]) -> None:
        table = self.connector.metadata.load_table(self.name)
        append_with_pypaimon(table, [{"id": each, "s": "other"} for each in ids])

    def expire(self, kept: int) -> None:
        for each in snapshot_ids(self.connector, self.name)[:-kept]:
            (self.folder / f"snapshot-{each}").unlink()

    def ids(self) -> Counter[int]:
        return Counter(row["id"] for row in read(self.connector, self.name))


class IcebergLake(Lake):
    def __init__(self, folder: Path) -> None:
        self.plain, self.is_keyed = PlainCatalog(folder), False
        schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
        self.plain.create(schema, {"format-version": "2"}, None)
        self.connector = self.plain.open()
        self.catalog = CatalogSpec("iceberg", str(folder), self.plain.options)
        self.name = NAME
        self.schema = schema

    def rows(self, table: TableHandle, ids: Sequence[int]) -> pa.RecordBatch:
        return inserted(self.connector, table, [{"id": each, "s": "new"} for each in ids])

    def append(self, ids: Sequence[int]) -> None:
        rows = pa.table({"id": list(ids), "s": ["other" for _ in ids]}, schema=self.schema)
        self.plain.library().load_table(("db", "t")).append(rows)

    def expire(self, kept: int) -> None:
        table = self.plain.library().load_table(("db", "t"))
        ids = [each.snapshot_id for each in sorted(table.snapshots(), key=_number)[:-kept]]
        current = table.current_snapshot()
        for each in ids:
            if current is not None and each != current.snapshot_id:
                table = self.plain.library().load_table(("db", "t"))
                table.maintenance.expire_snapshots().by_id(each).commit()

    def ids(self) -> Counter[int]:
        table = self.plain.library().load_table(("db", "t"))
        return Counter(table.scan().to_arrow()["id"].to_pylist())


def _number(snapshot: Any) -> int:
    return int(snapshot.sequence_number)


@pytest.fixture(params=["append", "key", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    kind = request.param
    return IcebergLake(tmp_path) if kind == "iceberg" else PaimonLake(tmp_path, KINDS[kind])


@pytest.mark.parametrize("seed", SEEDS)
def test_random_histories(lake: Any, seed: int) -> None:
    tasks = ("a", "b") if seed % 2 else ("a",)
    steps = History(lake, lake.catalog, seed, ("a",) if lake.is_keyed else tasks).play(STEPS)
    assert steps["runs"]
