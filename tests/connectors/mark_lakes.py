"""Tables to which tasks apply files, and what other engines do to them; without a JVM."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.support.iceberg_changes import inserted
from tests.support.keyed_changes import keyed_batches, new_row
from tests.support.paimon_tables import append_with_pypaimon, create, inserts, read, snapshot_ids


class Lake(ABC):
    """A table of one kind, and how others change it."""

    connector: Connector
    name: TableName
    root: Path

    @abstractmethod
    def rows(self, table: TableHandle, ids: Sequence[int]) -> pa.RecordBatch:
        """New rows with these ids."""

    @abstractmethod
    def append(self, ids: Sequence[int]) -> None:
        """Add rows as another engine does."""

    @abstractmethod
    def expire(self, kept: int) -> None:
        """Expire all but the newest snapshots as another engine does that honours nobody."""

    @abstractmethod
    def roll_back(self, snapshot_id: int) -> None:
        """Roll back as another engine does."""

    @abstractmethod
    def make_anew(self) -> None:
        """Drop the table, and make an empty one."""

    @abstractmethod
    def ids(self) -> Counter[int]:
        """The ids in the table."""


class PaimonLake(Lake):
    def __init__(self, folder: Path, key: Sequence[str]) -> None:
        self.catalog = CatalogSpec("paimon", str(folder))
        self.connector = open_connector(self.catalog, {})
        self.name = TableName("shop", "orders")
        self.root, self.folder = folder, folder / "shop.db/orders/snapshot"
        self.key, self.is_keyed = tuple(key), bool(key)
        self.make()

    def make(self) -> None:
        options = {"bucket": "2"} if self.is_keyed else {}
        columns = {"id": "int", "s": "string"}
        create(self.connector, columns, (), options, self.name, self.key)

    def make_anew(self) -> None:
        shutil.rmtree(self.folder.parent)
        self.make()

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

    def roll_back(self, snapshot_id: int) -> None:
        for each in snapshot_ids(self.connector, self.name):
            if each > snapshot_id:
                (self.folder / f"snapshot-{each}").unlink()
        (self.folder / "LATEST").write_text(str(snapshot_id))

    def ids(self) -> Counter[int]:
        return Counter(row["id"] for row in read(self.connector, self.name))


class IcebergLake(Lake):
    def __init__(self, folder: Path) -> None:
        self.plain, self.is_keyed = PlainCatalog(folder), False
        self.schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
        self.root = folder
        self.make()
        self.connector = self.plain.open()
        self.catalog = CatalogSpec("iceberg", str(folder), self.plain.options)
        self.name = NAME

    def make(self) -> None:
        self.plain.create(self.schema, {"format-version": "2"}, None)

    def make_anew(self) -> None:
        self.plain.library().drop_table(("db", "t"))
        self.make()

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

    def roll_back(self, snapshot_id: int) -> None:
        table = self.plain.library().load_table(("db", "t"))
        table.manage_snapshots().set_current_snapshot(snapshot_id).commit()

    def ids(self) -> Counter[int]:
        table = self.plain.library().load_table(("db", "t"))
        return Counter(table.scan().to_arrow()["id"].to_pylist())


def _number(snapshot: Any) -> int:
    return int(snapshot.sequence_number)
