"""Places with tables of one format: who changes them, and how their own libraries read them."""

from __future__ import annotations

import hashlib
import json
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pypaimon import CatalogFactory

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.plain_tables import PlainCatalog
from tests.judge.iceberg_spark import CATALOG, IcebergSpark
from tests.judge.judge import changelog_from_java, read_with_java
from tests.judge.jvm import JudgeError
from tests.judge.writer import JavaTable

Row = tuple[Any, ...]
Rows = Counter[Row]
# A change: its kind, the row.
Record = tuple[str, Row]
PAIMON = ("append", "vectors", "key", "tracked")
KINDS = (*PAIMON, "iceberg-cow", "iceberg-mor")
_TOLD = {"+I": "insert", "-U": "update_before", "+U": "update_after", "-D": "delete"}
_MARKS = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}
_OPTIONS: dict[str, dict[str, str]] = {
    "append": {},
    "vectors": {"deletion-vectors.enabled": "true"},
    "key": {"bucket": "2"},
    "tracked": {"row-tracking.enabled": "true"},
    "iceberg-cow": {"format-version": "2"},
    "iceberg-mor": {"format-version": "2", **_MARKS},
}


class State(NamedTuple):
    """A snapshot: its id, and what tells it from another one of the same id."""

    id: int
    identity: str


class Lake(ABC):
    """A catalog of tables of one format."""

    catalog: CatalogSpec
    roots: Sequence[Path]

    @property
    def connector(self) -> Connector:
        """Opened anew, as each job does it."""
        return open_connector(self.catalog, {})

    def make(
        self,
        name: TableName,
        kind: str,
        columns: dict[str, str],
        key: Sequence[str],
        partitions: Sequence[str] = (),
        **options: str,
    ) -> None:
        """A new table of a kind; ``key``: of a table that has one."""
        told = {each.replace("_", "-"): value for each, value in options.items()}
        spec = CreateTableSpec(
            tuple(ColumnSpec(n, kind_) for n, kind_ in columns.items()),
            tuple(partitions),
            primary_key=tuple(key) if kind == "key" else (),
            table_options={**_OPTIONS[kind], **told},
        )
        assert self.connector.metadata.create_table(name, spec)

    @abstractmethod
    def states(self, name: TableName) -> list[State]:
        """The snapshots of the table's history that are there, oldest first."""

    @abstractmethod
    def rows(self, name: TableName, kind: str, snapshot: int | None = None) -> Rows:
        """The rows of a snapshot, or the newest, as another library reads them."""

    @abstractmethod
    def append(self, name: TableName, kind: str, rows: Sequence[Row], chance: random.Random) -> str:
        """Add rows, as another engine does; which one it was."""

    @abstractmethod
    def compact(self, name: TableName, chance: random.Random) -> str:
        """Another engine puts files together."""

    @abstractmethod
    def expire(self, name: TableName, kept: int, chance: random.Random) -> str:
        """Another engine expires all snapshots but the newest ones."""

    def is_ours_to_shorten(self, name: TableName) -> bool:
        """Whether this project removes snapshots: not beside changelogs that outlive them."""
        return True

    @abstractmethod
    def roll_back(self, name: TableName, snapshot: int, chance: random.Random) -> str:
        """Another engine makes an earlier snapshot the newest one."""


class PaimonLake(Lake):
    """A warehouse that pypaimon and Paimon's Java change."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.roots = folder, (folder,)
        self.catalog = CatalogSpec("paimon", str(folder))

    def java(self, name: TableName) -> JavaTable:
        """The table for Paimon's Java."""
        fields = self._library(name).table_schema.fields
        kinds = {each.name: each.type.to_dict() for each in fields}
        return JavaTable(self.folder, str(name), kinds)

    def states(self, name: TableName) -> list[State]:
        folder = self.folder / f"{name.database}.db" / name.table / "snapshot"
        found = []
        for each in folder.glob("snapshot-*"):
            text = each.read_bytes()
            found.append(State(int(json.loads(text)["id"]), hashlib.sha256(text).hexdigest()))
        return sorted(found)

    def rows(self, name: TableName, kind: str, snapshot: int | None = None) -> Rows:
        if not self.states(name):
            return Counter()
        if kind == "key":
            read = read_with_java(self.folder, str(name), snapshot=snapshot)
            return Counter(tuple(each.values()) for each in read)
        table = self._library(name)
        if snapshot is not None:
            table = table.copy({"scan.snapshot-id": str(snapshot)})
        builder = table.new_read_builder()
        found = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
        return Counter(tuple(each.values()) for each in found)

    def changelog(self, name: TableName, first: int) -> list[Record]:
        """What Paimon's own stream tells of the snapshots from ``first`` on."""
        found = changelog_from_java(self.folder, str(name), first)
        return [(_TOLD[kind], tuple(row.values())) for kind, row in found]

    def append(self, name: TableName, kind: str, rows: Sequence[Row], chance: random.Random) -> str:
        table = self._library(name)
        names = [each.name for each in table.table_schema.fields]
        values = [dict(zip(names, row, strict=True)) for row in rows]
        if chance.random() < 0.5:
            self.java(name).append_rows(values)
            return "java"
        from spark_jobs.connectors.paimon.library.table_schema import arrow_schema

        builder = table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(pa.Table.from_pylist(values, schema=arrow_schema(table)))
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()
        return "pypaimon"

    def records(self, name: TableName, records: Sequence[tuple[str, Row]]) -> None:
        """Java writes records of a table with a key, each with its kind."""
        names = list(self.java(name).kinds)
        told = [(kind, dict(zip(names, row, strict=True))) for kind, row in records]
        self.java(name).append_records(told)

    def overwrite(self, name: TableName, rows: Sequence[Row]) -> None:
        """Java replaces all rows."""
        names = list(self.java(name).kinds)
        told = [("+I", dict(zip(names, row, strict=True))) for row in rows]
        self.java(name).append_records(told, overwrites=True)

    def delete(self, name: TableName, ids: Sequence[int]) -> None:
        """Java marks rows."""
        self.java(name).delete("id", ids)

    def compact(self, name: TableName, chance: random.Random) -> str:
        try:
            self.java(name).compact(full=chance.random() < 0.7)
        except JudgeError as error:
            if "EndOfScanException" not in str(error):
                raise
            return "java, for which there is nothing to do"
        return "java"

    def expire(self, name: TableName, kept: int, chance: random.Random) -> str:
        self.java(name).expire(keeps_changelogs=chance.random() < 0.1)
        return "java"

    def is_ours_to_shorten(self, name: TableName) -> bool:
        folder = self.folder / f"{name.database}.db" / name.table / "changelog"
        return not any(folder.glob("changelog-*"))

    def roll_back(self, name: TableName, snapshot: int, chance: random.Random) -> str:
        self.java(name).roll_back(snapshot)
        return "java"

    def _library(self, name: TableName) -> Any:
        return CatalogFactory.create({"warehouse": str(self.folder)}).get_table(str(name))


class IcebergLake(Lake):
    """A SQL catalog that pyiceberg changes, and Spark with Iceberg where there is a ``judge``."""

    def __init__(self, folder: Path, judge: IcebergSpark | None) -> None:
        self.judge = judge
        if judge is None:
            folder.mkdir(parents=True, exist_ok=True)
            plain = PlainCatalog(folder)
            plain.library().create_namespace_if_not_exists("db")
            self.library: Any = plain.library
            self.catalog = CatalogSpec("iceberg", str(folder), plain.options)
            self.roots = (folder,)
        else:
            self.library = judge.library
            self.catalog = CatalogSpec("iceberg", str(judge.warehouse), judge.options)
            self.roots = (judge.folder,)

    def table(self, name: TableName) -> Any:
        """The table of pyiceberg."""
        return self.library().load_table((name.database, name.table))

    def states(self, name: TableName) -> list[State]:
        table = self.table(name)
        found, at = [], table.current_snapshot()
        while at is not None:
            found.append(State(at.snapshot_id, str(at.snapshot_id)))
            parent = at.parent_snapshot_id
            at = None if parent is None else table.snapshot_by_id(parent)
        return found[::-1]

    def rows(self, name: TableName, kind: str, snapshot: int | None = None) -> Rows:
        found = self.table(name).scan(snapshot_id=snapshot).to_arrow().to_pylist()
        return Counter(tuple(each.values()) for each in found)

    def append(self, name: TableName, kind: str, rows: Sequence[Row], chance: random.Random) -> str:
        if self.judge is not None and chance.random() < 0.5:
            self.judge.sql(f"INSERT INTO {CATALOG}.{name} VALUES {values(rows)}")
            return "spark"
        table = self.table(name)
        columns = table.schema().as_arrow()
        told = [dict(zip(columns.names, row, strict=True)) for row in rows]
        table.append(pa.Table.from_pylist(told, schema=columns))
        return "pyiceberg"

    def compact(self, name: TableName, chance: random.Random) -> str:
        if self.judge is None:
            return ""
        procedure = chance.choice(
            ["rewrite_data_files", "rewrite_data_files", "rewrite_position_delete_files"]
        )
        options = "options => map('rewrite-all', 'true')"
        if procedure == "rewrite_data_files" and chance.random() < 0.4:
            options += ", strategy => 'sort', sort_order => 'id DESC', where => 'id < 8'"
        self.judge.sql(f"CALL {CATALOG}.system.{procedure}(table => '{name}', {options})")
        return f"spark {procedure}"

    def expire(self, name: TableName, kept: int, chance: random.Random) -> str:
        if self.judge is not None and kept == 1 and chance.random() < 0.5:
            self.judge.expire(str(name))
            return "java"
        gone = self.states(name)[:-kept]
        if gone and chance.random() < 0.3:
            gone = [chance.choice(gone)]  # One from the middle.
        for each in gone:
            self.table(name).maintenance.expire_snapshots().by_id(each.id).commit()
        return f"pyiceberg {len(gone)}"

    def roll_back(self, name: TableName, snapshot: int, chance: random.Random) -> str:
        if self.judge is not None and chance.random() < 0.5:
            self.judge.sql(f"CALL {CATALOG}.system.rollback_to_snapshot('{name}', {snapshot})")
            return "spark"
        self.table(name).manage_snapshots().set_current_snapshot(snapshot).commit()
        return "pyiceberg"


def values(rows: Sequence[Row]) -> str:
    """Rows of an id, a text and a number as SQL."""
    return ", ".join(", ".join(map(_literal, row)).join("()") for row in rows)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)
