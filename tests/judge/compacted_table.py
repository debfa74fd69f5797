"""A table that is written, compacted, tagged and expired by Java and by this project.

After every step, everybody has the model's rows, and the checker finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import CreateTagSpec, ExpireSnapshotsSpec
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import NotSupportedError
from tests.judge.watched_table import NAME, Kind, WatchedTable
from tests.support.compaction_runs import compact, in_groups_of
from tests.support.direct_merges import merge_rows
from tests.support.judged_values import Row
from tests.support.reachable import needed, stored

__all__ = ["NAME", "CompactedTable", "Kind"]


@dataclass
class CompactedTable(WatchedTable):
    """The steps; ``run`` runs compactions as jobs, None: in this process."""

    run: Callable[[CompactSpec], JobResult] | None = None

    def new_row(self, number: int) -> Row:
        self.clock += 1
        pick = self.rng.choice
        number_as_id: Any = number - 7
        if self.kind.id_type == "STRING":
            number_as_id = ("a" if number % 3 else "ä") + "x" * (number % 11) + str(number)
        elif self.kind.id_type.startswith("DECIMAL"):
            number_as_id = Decimal(number) / 4 - 3
        early = self.rng.randrange(9) if self.model.sequence else 0
        added = {"n": pick((None, self.clock))} if "n" in self.columns else {}
        return {
            "id": number_as_id,
            "part": pick("pq") if self.kind.has_key else pick(("p", "q", None)),
            "a": pick((None, self.rng.randrange(100))),
            "b": pick((None, pick("uvwxyz"))),
            "c": pick((None, Decimal(self.rng.randrange(10_000)) / 100)),
            "seq": self.clock + 20 - early,
            **added,
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
        order = self.order_of_rows()
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
        assert self.order_of_rows() == order, ("another order", self.text)
        self.check()
        self.check_stream_of_compaction(first)
        if chosen.mode == "full" and not chosen.partitions and chosen.max_partitions is None:
            self.check_stream(settled=not self.kind.hides_level_0 or chosen.include_pending)
        if chosen.max_partitions is None and chosen.target_file_size is None:
            self.check_settled(chosen)

    def check_settled(self, spec: CompactSpec) -> None:
        """The same compaction finds nothing left to do.

        In an append table it may once more put files together that came out smaller than their
        input, so that enough of them fit into one.
        """
        again = compact(self.connector, self.catalog, spec, name=NAME)
        if not self.kind.has_key and again.status == "committed":
            assert again.compaction.files_after < again.compaction.files_before, self.text
            self.check()
            again = compact(self.connector, self.catalog, spec, name=NAME)
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
        self.check_stream(settled=full)

    def alter(self) -> None:
        """The table gets the column ``n`` by Java, once."""
        if "n" in self.columns:
            return
        # Java cannot stream changelogs of an older schema, not even its own.
        self.check_stream(settled=False)
        self.java = self.java.alter(("add", ("n",), "INT"))
        self.columns["n"] = pa.int32()
        for rows in (self.model.rows, self.seen, self.stream.rows):
            for row in rows.values():
                row["n"] = None
        self.note("a column is added")

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
        self.check_stream(settled=False)
        if by_java:
            self.java.expire()
        else:
            maintenance = self.connector.maintenance
            assert maintenance is not None
            spec = ExpireSnapshotsSpec(retain_min=self.rng.choice((1, 2)), older_than="0 s")
            maintenance.expire_snapshots(NAME, spec, dry_run=False)
        self.note(f"expire, by Java {by_java}")
