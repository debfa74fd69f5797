"""Each landed file is applied once, whatever happens to task and table; without a JVM."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.maintenance import RollbackSpec, SetCurrentSnapshotSpec
from spark_jobs.contract.marks import mark_text
from spark_jobs.contract.new_files import NewFiles
from spark_jobs.engine.marks.applied_files import AppliedFiles
from spark_jobs.errors import CommitError
from spark_jobs.landing.files import FileVersion, LandedFile
from tests.connectors.mark_histories import History, KilledError, State, killed_at
from tests.connectors.mark_lakes import IcebergLake, PaimonLake
from tests.support.turns import EVERYTHING

KINDS = {"append": (), "key": ("id",)}
SEEDS = range(20 if EVERYTHING else 1)
STEPS = 60 if EVERYTHING else 20


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


@pytest.mark.parametrize("lake", ["append", "iceberg"], indirect=True)
@pytest.mark.parametrize("by", ["us", "others"])
def test_a_mark_counts_again_in_a_snapshot_before_its_undo(history: History, by: str) -> None:
    """The snapshot that had the mark has expired, and so has none that tells of it."""
    ((_, operation_id, _),) = history.state.commits
    history.others_append()
    before, state = history.lake.connector.metadata.load_table(history.lake.name), history.state
    assert before.snapshot_id is not None
    assert history.undo(f"run-{operation_id}") is not None
    history.lake.expire(2)

    if by == "us":
        history.done(RollbackSpec(before.snapshot_id, force=True))
    else:
        history.lake.roll_back(before.snapshot_id)

    history.state = state
    history.require_right()
    assert history.apply("a") is not None
    history.require_right()


@pytest.mark.parametrize("lake", ["append", "iceberg"], indirect=True)
@pytest.mark.parametrize("is_undone_again", [False, True])
def test_an_undo_that_has_expired_is_known(history: History, is_undone_again: bool) -> None:
    ((_, operation_id, files),) = history.state.commits
    undo = history.undo(f"run-{operation_id}")
    assert undo is not None
    if is_undone_again:
        assert history.undo(f"care-{undo}") is not None
    for _ in range(2):
        history.others_append()
    history.state = State({"a": files if is_undone_again else frozenset()}, history.state.others)
    history.lake.expire(1)
    history.require_right()


@pytest.mark.parametrize("lake", ["append", "iceberg"], indirect=True)
@pytest.mark.parametrize("by", ["us", "others"])
def test_a_mark_does_not_count_between_an_undo_and_the_undo_of_it(
    history: History, by: str
) -> None:
    ((_, operation_id, _),) = history.state.commits
    undo = history.undo(f"run-{operation_id}")
    history.others_append()
    between = history.lake.connector.metadata.load_table(history.lake.name).snapshot_id
    assert between is not None
    assert history.undo(f"care-{undo}") is not None
    history.lake.expire(2)

    if by == "us":
        history.done(RollbackSpec(between, force=True))
    else:
        history.lake.roll_back(between)

    history.state = State({"a": frozenset()}, history.state.others)
    history.require_right()
    assert history.apply("a") is not None
    history.require_right()


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
@pytest.mark.parametrize("by", ["us", "others"])
def test_an_undo_to_which_the_table_comes_back_is_known(history: History, by: str) -> None:
    ((_, operation_id, _),) = history.state.commits
    applied = history.lake.connector.metadata.load_table(history.lake.name).snapshot_id
    assert history.undo(f"run-{operation_id}") is not None
    undone = history.lake.connector.metadata.load_table(history.lake.name).snapshot_id
    assert applied is not None
    assert undone is not None

    if by == "us":
        history.done(SetCurrentSnapshotSpec(applied))
    else:
        history.lake.roll_back(applied)
        history.require_right()
    history.done(SetCurrentSnapshotSpec(undone))

    history.state = State({"a": frozenset()}, history.state.others)
    for _ in range(2):
        history.others_append()
    history.lake.expire(1)
    history.require_right()
    assert history.apply("a") is not None
    history.require_right()


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


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_a_mark_of_a_snapshot_that_was_left_does_not_count(history: History) -> None:
    connector, before = history.lake.connector, history.state
    table = connector.metadata.load_table(history.lake.name)
    history.apply("a")
    assert table.snapshot_id is not None
    history.done(SetCurrentSnapshotSpec(table.snapshot_id, force=True))
    history.state = before
    history.require_right()
    history.others_append()
    history.lake.expire(1)
    history.require_right()
    assert history.apply("a") is not None
    assert history.state.of("a") == {0, 1, 2}


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_a_mark_that_another_engine_left_does_not_count(history: History) -> None:
    before, table = history.state, history.lake.plain.library().load_table(("db", "t"))
    first = table.current_snapshot().snapshot_id
    history.apply("a")
    history.lake.roll_back(first)
    history.state = before
    history.others_append()
    table.refresh().maintenance.expire_snapshots().by_id(first).commit()
    history.require_right()
    assert history.apply("a") is not None
    assert history.state.of("a") == {0, 1, 2}


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
