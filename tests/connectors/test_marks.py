"""Each landed file is applied once, whatever happens to task and table; without a JVM."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.marks import mark_text
from spark_jobs.contract.new_files import NewFiles
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.engine.marks.applied_files import AppliedFiles
from spark_jobs.errors import CommitError
from spark_jobs.landing.files import FileVersion, LandedFile
from spark_jobs.spi.tables import TableHandle
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.connectors.mark_histories import History, Lake, State
from tests.connectors.mark_kills import KilledError, killed_at
from tests.support.iceberg_changes import inserted
from tests.support.keyed_changes import keyed_batches, new_row
from tests.support.paimon_tables import append_with_pypaimon, create, inserts, read, snapshot_ids
from tests.support.turns import EVERYTHING

KINDS = {"append": (), "key": ("id",)}
SEEDS = range(20 if EVERYTHING else 1)
STEPS = 60 if EVERYTHING else 20


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

    def ids(self) -> Counter[int]:
        table = self.plain.library().load_table(("db", "t"))
        return Counter(table.scan().to_arrow()["id"].to_pylist())


def _number(snapshot: Any) -> int:
    return int(snapshot.sequence_number)


@pytest.fixture(params=["append", "key", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    kind = request.param
    return IcebergLake(tmp_path) if kind == "iceberg" else PaimonLake(tmp_path, KINDS[kind])


@pytest.fixture
def history(lake: Any) -> History:
    """Three files, two of which the task has applied."""
    found = History(lake, lake.catalog, 0)
    found.land_at(1, 2, 3)
    found.limits = NewFiles("all", max_files=2)
    found.apply("a")
    return found


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_histories(lake: Any, seed: int) -> None:
    tasks = ("a", "b") if seed % 2 and not lake.is_keyed else ("a",)
    steps = History(lake, lake.catalog, seed, tasks).play(STEPS)
    assert steps["runs"]


@pytest.mark.parametrize("lake", ["append"], indirect=True)
def test_what_others_expire_is_known_from_the_notes(history: History) -> None:
    for _ in range(3):
        history.others_append()
    history.lake.expire(1)
    history.require_right()
    assert history.apply("a") is not None
    assert history.state.of("a") == {0, 1, 2}


@pytest.mark.parametrize("lake", ["append"], indirect=True)
def test_a_killed_publication_that_nobody_can_see_any_more_is_said(history: History) -> None:
    begun = history.begin("a", "lost")
    assert begun is not None
    with killed_at("published", history.lake.connector), pytest.raises(KilledError):
        begun.publish()
    history.others_append()
    history.lake.expire(1)
    with pytest.raises(CommitError, match=r"MARK_LOST.*whether operation lost moved it"):
        history.begin("a", "next")


@pytest.mark.parametrize("lake", ["append"], indirect=True)
@pytest.mark.parametrize("damage", ["gone", "other content"])
def test_parts_that_are_gone_or_damaged_are_an_error(history: History, damage: str) -> None:
    (part,) = (e for e in history.lake.root.glob("_marks/*/*") if e.suffix != ".json")
    before = part.read_bytes()
    part.unlink() if damage == "gone" else part.write_bytes(before[:-1])
    with pytest.raises(CommitError, match=f"MARK_LOST.*{part.name} is"):
        history.begin("a", "next")
    part.write_bytes(before)
    assert history.apply("a") is not None


@pytest.mark.parametrize("lake", ["append", "iceberg"], indirect=True)
def test_a_table_made_anew_begins_at_start_but_never_at_now(history: History) -> None:
    history.lake.make_anew()
    history.state = State()
    history.limits = NewFiles("now")
    with pytest.raises(CommitError, match=r"MARK_LOST.*was rolled back to a time before"):
        history.begin("a", "next")
    history.limits = NewFiles("all")
    history.apply("a")
    assert history.state.of("a") == {0, 1, 2}
    history.require_right()


@pytest.mark.parametrize("lake", ["append"], indirect=True)
def test_a_run_is_undone_before_those_on_which_later_ones_build(history: History) -> None:
    first, second = history.state.commits[0][1], history.apply("a")
    assert history.undo(f"run-{first}") is None
    assert second is not None
    assert history.undo(f"run-{second}") is not None
    assert history.undo(f"run-{first}") is not None
    history.state = State()
    history.limits = NewFiles("all")
    history.apply("a")
    history.require_right()


def test_parts_stay_few_and_small() -> None:
    applied = AppliedFiles()
    for number in range(500):
        applied = applied.with_files(file_at(number * 3 + i) for i in range(number % 4))
        assert len(applied.parts) <= max(1, len(applied).bit_length())
        assert len(mark_text(applied.document())) < 700
    sizes = [len(each) for each in applied.parts]
    assert all(older >= 2 * newer for older, newer in pairwise(sizes))
    again = file_at(3, 11)
    assert applied.has(file_at(3))
    assert applied.has_name(again)
    assert not applied.has(again)
    assert applied.with_files([again]).has(again)
    assert len(applied.with_files([again])) == len(applied)


def file_at(number: int, size: int = 10) -> LandedFile:
    return LandedFile(f"/landing/{number}", f"/landing/{number}", FileVersion(size, number))
