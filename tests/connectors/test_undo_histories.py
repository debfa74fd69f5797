"""Random histories in which runs are undone, without a JVM; many by ``MERGE_TESTS=all``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.plain_tables import PlainCatalog
from tests.connectors.iceberg.undo_state import places, rows_with_ids
from tests.connectors.undo_histories import Files, History, Row, Tables
from tests.support.direct_merges import merge_rows
from tests.support.iceberg_changes import deleted, inserted, updated
from tests.support.iceberg_version_3 import upgrade
from tests.support.paimon_tables import append_with_pypaimon, create
from tests.support.turns import EVERYTHING

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
VECTORS = {"deletion-vectors.enabled": "true"}
TRACKING = {"row-tracking.enabled": "true"}
PAIMON: Mapping[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    "append": ({}, ()),
    "vectors": (VECTORS, ()),
    "bucketed vectors": ({**VECTORS, "bucket": "2", "bucket-key": "id"}, ()),
    "row tracking": (TRACKING, ()),
    "tracked vectors": ({**TRACKING, **VECTORS}, ()),
    "key": ({"bucket": "2"}, ("id",)),
    "dynamic key": ({}, ("id",)),
    "last value": ({"bucket": "2", "merge-engine": "partial-update"}, ("id",)),
}
ICEBERG = ("copy-on-write", "merge-on-read", "version 3")
SEEDS = range(40 if EVERYTHING else 1)
RUNS = 10 if EVERYTHING else 5


class PaimonTables(Tables):
    def __init__(self, folder: Path, kind: str) -> None:
        options, key = PAIMON[kind]
        self.connector = open_connector(CatalogSpec("paimon", str(folder)), {})
        self.names = [TableName("shop", f"t{n}") for n in range(3)]
        self.is_keyed = bool(key)
        for name in self.names:
            create(
                self.connector,
                {"id": "int", "s": "string"},
                (),
                options,
                name=name,
                primary_key=key,
            )

    def write(
        self, name: TableName, operation_id: str, told: Mapping[str, str], changes: dict[int, Any]
    ) -> None:
        source = [{"id": id_, "s": s} for id_, s in changes.items()]
        own: Any = {"operation_id": operation_id, "properties": told}
        merge_rows(self.connector, name, ["id"], source, ["s"], _is_deleted, **own)

    def append(self, name: TableName, ids: Sequence[int]) -> None:
        table = self.connector.metadata.load_table(name)
        append_with_pypaimon(table, [{"id": each, "s": "x"} for each in ids])

    def rows(self, name: TableName) -> Counter[Row]:
        native = self.connector.metadata.load_table(name).native
        builder = native.table.new_read_builder()
        if native.tracks_rows:
            builder = builder.with_projection(["id", "s", "_ROW_ID", "_SEQUENCE_NUMBER"])
        read = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        return Counter(tuple(row.values()) for row in read.to_pylist())

    def files(self, name: TableName) -> Files:
        native = self.connector.metadata.load_table(name).native
        vectors = native.files.vectors
        found = {}
        for split in native.table.new_read_builder().new_scan().plan().splits():
            for file in split.files:
                vector = vectors.get(file.file_name)
                found[file.file_name] = vector.cardinality if vector else 0
        return found


def _is_deleted(row: Mapping[str, Any]) -> bool:
    return row["s"] is None


class IcebergTables(Tables):
    def __init__(self, folder: Path, mode: str) -> None:
        self.catalog = PlainCatalog(folder)
        self.connector: Connector = self.catalog.open()
        self.names = [TableName("db", f"t{n}") for n in range(3)]
        self.is_keyed = False
        self.is_3 = mode == "version 3"
        way = "copy-on-write" if mode == "copy-on-write" else "merge-on-read"
        library = self.catalog.library()
        library.create_namespace("db")
        for name in self.names:
            properties = {f"write.{each}.mode": way for each in ("delete", "update", "merge")}
            table = library.create_table(
                ("db", name.table), SCHEMA, properties={"format-version": "2", **properties}
            )
            if self.is_3:
                upgrade(table)

    def write(
        self, name: TableName, operation_id: str, told: Mapping[str, str], changes: dict[int, Any]
    ) -> None:
        found = DirectWrite(
            self.connector, operation_id, name=name, properties=told, rewrite_share=0.6
        )
        known = places(self.connector, name)
        sink = found.handle.sinks.open("task")
        old = sorted((known[id_], id_) for id_ in changes if id_ in known)
        for (file, position), id_ in old:
            s = changes[id_]
            gone = deleted(file, position, s=pa.string())
            sink.store_merged_rows(gone if s is None else updated(file, position, s=s))
        new = [{"id": id_, "s": s} for id_, s in changes.items() if id_ not in known and s]
        if new:
            sink.store_merged_rows(inserted(self.connector, found.table, new))
        found.fragments += sink.finish()
        found.publish()

    def append(self, name: TableName, ids: Sequence[int]) -> None:
        rows = [{"id": each, "s": "x"} for each in ids]
        if self.is_3:
            # pyiceberg cannot write this version.
            DirectWrite(self.connector, name=name, reads=False).insert(*rows).publish()
        else:
            table = self.catalog.library().load_table(("db", name.table))
            table.append(pa.Table.from_pylist(rows, schema=SCHEMA))

    def rows(self, name: TableName) -> Counter[Row]:
        found = Counter(rows_with_ids(self.connector, name))
        if not self.is_3:
            read = self.catalog.library().load_table(("db", name.table)).scan().to_arrow()
            plain = Counter((row["id"], row["s"]) for row in read.to_pylist())
            assert plain == Counter((id_, s) for id_, s, _ in found.elements())
        return found

    def files(self, name: TableName) -> Files:
        pinned = pinned_table(self.connector.metadata.load_table(name))
        marked = {each.path: sum(e.row_count for e in each.deletes) for each in pinned.files}
        # A rewrite of deletes replaces those of a run, and marks the same rows.
        return marked | {str(each.key): 0 for file in pinned.files for each in file.deletes}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", PAIMON)
@pytest.mark.by_turns(8)
def test_histories_of_paimon(tmp_path: Path, kind: str, seed: int) -> None:
    seen = History(PaimonTables(tmp_path, kind), seed).play(RUNS)

    assert seen["undone"] > 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ICEBERG)
@pytest.mark.by_turns(3)
def test_histories_of_iceberg(tmp_path: Path, mode: str, seed: int) -> None:
    seen = History(IcebergTables(tmp_path, mode), seed).play(RUNS)

    assert seen["undone"] > 1
