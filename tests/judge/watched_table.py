"""A table, and a model of what is in it: everybody has its rows, and the checker finds nothing."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.spi.connector import Connector
from tests.judge.judge import changelog_from_java, read_with_java
from tests.judge.keyed_model import KeyedModel
from tests.judge.streams import Replay
from tests.judge.tables import Warehouse
from tests.judge.writer import JavaTable
from tests.support import append_checker, keyed_checker
from tests.support.direct_merges import live_rows
from tests.support.judged_values import Row, differences, from_arrow
from tests.support.reachable import needed, stored

NAME = TableName("d", "t")
_COLUMNS = {
    "part": pa.string(),
    "a": pa.int32(),
    "b": pa.string(),
    "c": pa.decimal128(12, 2),
    "seq": pa.int32(),
}
_IDS = {
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "DECIMAL(22, 3)": pa.decimal128(22, 3),
}


@dataclass(frozen=True)
class Kind:
    """Options of the table; ``has_key``: a primary key. ``partitioned``: by ``part``."""

    options: Mapping[str, str]
    has_key: bool
    partitioned: bool
    id_type: str = "BIGINT"

    @property
    def key(self) -> tuple[str, ...]:
        """What tells rows apart; in append tables, no two rows have the same."""
        return ("part", "id") if self.partitioned and self.has_key else ("id",)

    @property
    def hides_level_0(self) -> bool:
        """Whether readers see records only once they are compacted, which writers do not do."""
        vectors = self.options.get("deletion-vectors.enabled") == "true"
        first_row = self.options.get("merge-engine") == "first-row"
        return self.has_key and (vectors or first_row) and "write-only" in self.options


@dataclass
class WatchedTable:
    """The table and its model.

    ``kept``: the rows of tags and branches by name. ``done``: what happened, for messages.
    """

    warehouse: Warehouse
    kind: Kind
    rng: random.Random
    done: list[str] = field(default_factory=list)
    kept: dict[tuple[str, str], list[Row]] = field(default_factory=dict)
    clock: int = 0

    def __post_init__(self) -> None:
        kinds = {
            "id": f"{self.kind.id_type} NOT NULL",
            "part": "STRING NOT NULL" if self.kind.has_key else "STRING",
            "a": "INT",
            "b": "STRING",
            "c": "DECIMAL(12, 2)",
            "seq": "INT",
        }
        keys = ["part"] if self.kind.partitioned else []
        primary = self.kind.key if self.kind.has_key else ()
        self.java = JavaTable.of_types(
            self.warehouse.path, str(NAME), kinds, keys, self.kind.options, primary
        )
        options = self.kind.options
        engine = options.get("merge-engine", "deduplicate")
        sequence = "sequence.field" in options
        self.model = KeyedModel(self.kind.key, engine, sequence=sequence)
        self.seen: dict[Any, Row] = {}
        self.stream, self.streamed = Replay(self.kind.key), 0
        self.columns = {"id": _IDS[self.kind.id_type], **_COLUMNS}
        self.done.append(f"{self.kind}")

    @property
    def catalog(self) -> CatalogSpec:
        return CatalogSpec("paimon", str(self.warehouse.path))

    @property
    def connector(self) -> Connector:
        return open_connector(self.catalog, {})

    @property
    def folder(self) -> Path:
        return self.warehouse.path / "d.db" / "t"

    @property
    def snapshot(self) -> Any:
        return self.warehouse.table(str(NAME)).snapshot_manager().get_latest_snapshot()

    @property
    def owes(self) -> bool:
        """Whether compactions write the changelog of appended records."""
        return self.kind.options.get("changelog-producer") in ("lookup", "full-compaction")

    @property
    def rows(self) -> list[Row]:
        """The rows that readers see."""
        found = self.seen if self.kind.hides_level_0 else self.model.rows
        return self.typed(found.values())

    def typed(self, rows: Any) -> list[Row]:
        """Rows of the model with values as in ``tests.support.judged_values``."""
        found = list(rows)
        arrays = {n: pa.array([row[n] for row in found], kind) for n, kind in self.columns.items()}
        return from_arrow(pa.table(arrays))

    @property
    def text(self) -> str:
        return "\n".join(self.done)

    def note(self, what: str) -> None:
        self.done.append(what)
        self.check()

    def check(self) -> None:
        """Everybody sees the model's rows, and the files are as the metadata says."""
        expected = self.rows
        assert not differences(self._read(), expected), self.text
        connector = self.connector
        table = connector.metadata.load_table(NAME)
        ours = [{n: row[n] for n in table.column_names} for row in live_rows(connector, table)]
        assert not differences(ours, expected), self.text
        checker = keyed_checker if self.kind.has_key else append_checker
        problems = checker.problems_of(self.warehouse.table(str(NAME)))
        assert not problems, (problems, self.text)
        assert needed(self.folder) <= stored(self.folder), self.text

    def _read(self) -> list[Row]:
        """The rows of Java; pypaimon counts twice what a lookup compaction has merged."""
        options = self.kind.options
        looks_up = "lookup" in options.values() or "force-lookup" in options
        if options.get("merge-engine") == "aggregation" and looks_up:
            return read_with_java(self.warehouse.path, str(NAME))
        return self.warehouse.both_readers(str(NAME))

    def check_kept(self) -> None:
        """Tags and branches have the rows that they had."""
        for (kind, name), rows in self.kept.items():
            found = read_with_java(self.warehouse.path, str(NAME), **{kind: name})
            wrong = differences(*(map(_without_added, each) for each in (found, rows)))
            assert not wrong, (kind, name, wrong, self.text)

    def order_of_rows(self) -> Sequence[Any] | None:
        """The ids of each fixed bucket of an append table, in order; None: there is none."""
        if self.kind.has_key or int(self.kind.options.get("bucket", "-1")) < 0:
            return None
        found = append_checker.rows_in_order(self.warehouse.table(str(NAME)), "id")
        return sorted(found.items(), key=repr)

    def check_stream_of_compaction(self, first: int) -> None:
        """Streams read nothing of a compaction, unless it owes them a changelog."""
        if self.owes or self.snapshot.id < first:
            return
        producer = self.kind.options.get("changelog-producer", "none")
        if self.kind.has_key and producer == "none":
            return
        changes = changelog_from_java(self.warehouse.path, str(NAME), first)
        assert changes == [], (changes, self.text)

    def check_stream(self, *, settled: bool) -> None:
        """A stream of everything fits; ``settled``: no compaction owes it a change."""
        if not self.owes:
            return
        latest = self.snapshot.id
        if latest > self.streamed:
            first = self.streamed + 1
            changes = changelog_from_java(self.warehouse.path, str(NAME), first)
            self.done.append(f"stream {changes}")
            self.stream.read(changes)
            self.streamed = latest
        assert not self.stream.wrong, ("\n".join(self.stream.wrong), self.text)
        if settled:
            assert not differences(self.stream.rows.values(), self.rows), self.text


def _without_added(row: Row) -> Row:
    """Tags and branches may lack a column that was added shortly before or after them."""
    return {name: value for name, value in row.items() if name != "n" or value is not None}
