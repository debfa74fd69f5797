"""A table that is written, compacted, tagged and expired by Java and by this project, and a model.

After every step, everybody has the model's rows, and the checker finds nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import CreateTagSpec, ExpireSnapshotsSpec
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.connector import Connector
from tests.connectors.paimon.reachable import needed, stored
from tests.judge import append_checker, keyed_checker
from tests.judge.judge import changelog_from_java, read_with_java
from tests.judge.keyed_model import KeyedModel
from tests.judge.streams import Replay
from tests.judge.tables import Warehouse
from tests.judge.values import Row, differences, from_arrow
from tests.judge.writer import JavaTable
from tests.support.compaction_runs import compact, in_groups_of
from tests.support.direct_merges import live_rows, merge_rows

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
class CompactedTable:
    """The table and its model; ``run`` runs compactions as jobs, None: in this process.

    ``kept``: the rows of tags and branches by name. ``done``: what happened, for messages.
    """

    warehouse: Warehouse
    kind: Kind
    rng: random.Random
    run: Callable[[CompactSpec], JobResult] | None = None
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
        self.done.append(f"{self.kind}")

    # What is known.

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
        """Rows of the model with values as in ``tests.judge.values``."""
        found = list(rows)
        types = {"id": _IDS[self.kind.id_type], **_COLUMNS}
        arrays = {n: pa.array([row[n] for row in found], kind) for n, kind in types.items()}
        return from_arrow(pa.table(arrays))

    # Steps.

    def new_row(self, number: int) -> Row:
        self.clock += 1
        pick = self.rng.choice
        number_as_id: Any = number - 7
        if self.kind.id_type == "STRING":
            number_as_id = ("a" if number % 3 else "ä") + "x" * (number % 11) + str(number)
        elif self.kind.id_type.startswith("DECIMAL"):
            number_as_id = Decimal(number) / 4 - 3
        early = self.rng.randrange(9) if self.model.sequence else 0
        return {
            "id": number_as_id,
            "part": pick("pq") if self.kind.has_key else pick(("p", "q", None)),
            "a": pick((None, self.rng.randrange(100))),
            "b": pick((None, pick("uvwxyz"))),
            "c": pick((None, Decimal(self.rng.randrange(10_000)) / 100)),
            "seq": self.clock + 20 - early,
        }

    def some_rows(self, count: int, *, new: bool = False) -> list[Row]:
        """Rows of different ids; ``new``: of ids that no row has."""
        known = {row["id"] for row in self.model.rows.values()}
        rows = map(self.new_row, self.rng.sample(range(90), count))
        return [row for row in rows if not new or row["id"] not in known]

    def append(self, count: int) -> None:
        """A commit of Java."""
        if not self.kind.has_key:
            rows = self.some_rows(count, new=True)
            self.java.append_rows(self.typed(rows))
            for row in rows:
                self.model.stored(row)
            self.note(f"java appends {rows}")
            return
        records = []
        for row in self.some_rows(count):
            chance = self.rng.random()
            takes_deletes = self.model.engine == "deduplicate"
            kind = "-D" if takes_deletes and chance < 0.25 else "+I"
            if self.model.is_buried(row):
                # Whether the delete record is still there depends on compactions.
                row["seq"] = self.clock + 20
            records.append((kind, row))
        self.java.append_records([(kind, self.typed([row])[0]) for kind, row in records])
        for kind, row in records:
            self.model.written(kind, row)
        self.note(f"java writes {records}")

    def delete_by_java(self) -> None:
        """A commit of Java that marks rows of an append table with vectors."""
        gone = [row for row in self.typed(self.model.rows.values()) if self.rng.random() < 0.2]
        if not gone:
            return
        self.java.delete("id", [row["id"] for row in gone])
        for row in gone:
            self.model.deleted(self.model.key_of(row))
        self.note(f"java deletes {[row['id'] for row in gone]}")

    def merge(self) -> None:
        """A statement of this project."""
        source = list({self.model.key_of(row): row for row in self.some_rows(9)}.values())
        if not self.kind.has_key:
            source = [self._placed(row) for row in source]
        assigned = self.rng.sample(["a", "b", "c", "seq"], 2)
        may_exist = self.rng.random() < 0.3

        def is_deleted(row: Row) -> bool:
            return bool(row["seq"] % 4 == 0)

        def merged() -> None:
            rows = self.typed(source)
            key = self.kind.key
            merge_rows(self.connector, NAME, key, rows, assigned, is_deleted, may_exist=may_exist)

        self._or_compacts(merged)
        for row in source:
            key = self.model.key_of(row)
            old = self.model.rows.get(key)
            if old is None:
                self.model.stored(row)
            elif is_deleted(row):
                self.model.deleted(key)
            else:
                self.model.stored({**old, **{name: row[name] for name in assigned}})
        if self.kind.hides_level_0:
            self.seen = dict(self.model.rows)
        self.note(f"merge sets {assigned} {may_exist} {source}")

    def _placed(self, row: Row) -> Row:
        """In append tables a row stays in its partition."""
        old = self.model.rows.get(self.model.key_of(row))
        return row if old is None else {**row, "part": old["part"]}

    def _or_compacts(self, merged: Callable[[], None]) -> None:
        """Merge, after a compaction if there are records that forbid it."""
        try:
            if not self.kind.hides_level_0 or self.seen == self.model.rows:
                merged()
                return
        except NotSupportedError as error:
            self.done.append(f"merge is refused: {error.message} {error.remedy}")
        self.compact(CompactSpec(mode="full", include_pending=True))
        merged()

    def random_spec(self) -> CompactSpec:
        """Any statement."""
        pick = self.rng.choice
        specs = [{"part": "'p'"}, {"part": "'q'"}]
        if not self.kind.has_key:
            specs.append({"part": "NULL"})
        named = self.kind.partitioned and self.rng.random() < 0.3
        full = self.rng.random() < 0.5
        whole = full and not named
        return CompactSpec(
            partitions=(pick(specs),) if named else (),
            mode="full" if full else "minor",
            target_file_size=pick((None, None, "1 kb", "3 kb", "10 kb")),
            min_files=pick((None, 2, 3)),
            small_file_share=pick((None, None, 0.1, 1.0)),
            deleted_share=pick((None, 0.0, 0.1, 1.0)),
            sorted_runs=pick((None, 2, 3)),
            max_partitions=None if whole or self.rng.random() < 0.7 else 1,
            include_pending=whole and self.rng.random() < 0.7,
        )

    def compact(self, spec: CompactSpec | None = None) -> None:
        """A compaction of this project; rows stay, files of no snapshot are not left."""
        chosen = spec or self.random_spec()
        first, orphans = self.snapshot.id + 1, stored(self.folder) - needed(self.folder)
        order = self._order()
        connector = self.connector
        if self.rng.random() < 0.5:
            connector = in_groups_of(connector, 1)
        if self.run is not None:
            result = self.run(chosen)
        else:
            result = compact(connector, self.catalog, chosen, name=NAME)
        self.done.append(f"compact {chosen} -> {result.status} {result.compaction}")
        assert result.error is None, (result.error, self.text)
        if chosen.include_pending:
            self.seen = dict(self.model.rows)
        assert stored(self.folder) - needed(self.folder) == orphans, self.text
        assert self.snapshot.id == (result.new_snapshot_id or first - 1), self.text
        assert self._order() == order, ("another order", self.text)
        self.check()
        self._check_stream_of_compaction(first)
        if chosen.mode == "full" and not chosen.partitions and chosen.max_partitions is None:
            self._check_stream(settled=not self.kind.hides_level_0 or chosen.include_pending)
        if chosen.max_partitions is None and chosen.target_file_size is None:
            again = compact(self.connector, self.catalog, chosen, name=NAME)
            assert again.error is None, (again.error, self.text)
            assert again.status == "unchanged", (again.compaction, self.text)

    def compact_by_java(self, *, full: bool) -> None:
        self.java.compact(full=full)
        if full:
            self.seen = dict(self.model.rows)
        elif self.kind.hides_level_0:
            # It has shown some records.
            self.java.compact(full=True)
            self.seen = dict(self.model.rows)
        self.note(f"java compacts, full {full}")
        self._check_stream(settled=full)

    def tag(self, name: str) -> None:
        maintenance = self.connector.maintenance
        assert maintenance is not None
        maintenance.create_tag(NAME, CreateTagSpec(name))
        self.kept["tag", name] = self.rows
        self.note(f"tag {name}")

    def branch(self, name: str) -> None:
        """A branch by Java, which begins with a tag."""
        self.java.new_branch(name)
        self.kept["branch", name] = self.kept["tag", f"before-{name}"] = self.rows
        self.note(f"branch {name}")

    def expire(self, *, by_java: bool) -> None:
        self._check_stream(settled=False)
        if by_java:
            self.java.expire()
        else:
            maintenance = self.connector.maintenance
            assert maintenance is not None
            spec = ExpireSnapshotsSpec(retain_min=self.rng.choice((1, 2)), older_than="0 s")
            maintenance.expire_snapshots(NAME, spec, dry_run=False)
        self.note(f"expire, by Java {by_java}")

    # Looks.

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
            assert not differences(found, rows), (kind, name, self.text)

    def _order(self) -> Sequence[Any] | None:
        """The ids of each fixed bucket of an append table, in order; None: there is none."""
        if self.kind.has_key or int(self.kind.options.get("bucket", "-1")) < 0:
            return None
        found = append_checker.rows_in_order(self.warehouse.table(str(NAME)), "id")
        return sorted(found.items(), key=repr)

    def _check_stream_of_compaction(self, first: int) -> None:
        """Streams read nothing of a compaction, unless it owes them a changelog."""
        if self.owes or self.snapshot.id < first:
            return
        producer = self.kind.options.get("changelog-producer", "none")
        if self.kind.has_key and producer == "none":
            return
        changes = changelog_from_java(self.warehouse.path, str(NAME), first)
        assert changes == [], (changes, self.text)

    def _check_stream(self, *, settled: bool) -> None:
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
