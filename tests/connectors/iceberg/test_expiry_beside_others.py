"""Expiry beside others, interrupted, or without an answer: nothing of others is lost by it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.maintenance import ExpireSnapshotsSpec
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.answers import answering, lost_answer, lost_request, refused
from tests.connectors.iceberg.plain_history import (
    NAME,
    append,
    care,
    expire,
    ids,
    made,
    needed,
    references,
    refusal,
    replace_all,
    root,
    snapshots,
    stored,
    table,
)
from tests.connectors.iceberg.plain_tables import PlainCatalog

NOW = "0 s"


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """Five snapshots, which append the ids 0 to 4."""
    return made(tmp_path, 5)


Meanwhile = Callable[[PlainCatalog], Any]


def _tagged(catalog: PlainCatalog) -> None:
    table(catalog).manage_snapshots().create_tag(snapshots(catalog)[1], "meanwhile").commit()


def _tagged_for_a_moment(catalog: PlainCatalog) -> None:
    second = snapshots(catalog)[1]
    table(catalog).manage_snapshots().create_tag(second, "meanwhile").commit()
    table(catalog).manage_snapshots().remove_tag("meanwhile").commit()


def _rolled_back(catalog: PlainCatalog) -> None:
    table(catalog).manage_snapshots().set_current_snapshot(snapshots(catalog)[1]).commit()


def _appended(catalog: PlainCatalog) -> None:
    append(catalog, 9)


def _expired(catalog: PlainCatalog) -> None:
    table(catalog).maintenance.expire_snapshots().by_id(snapshots(catalog)[0]).commit()


@pytest.mark.parametrize(
    "meanwhile", [_tagged, _tagged_for_a_moment, _rolled_back, _appended, _expired]
)
def test_what_others_do_meanwhile_is_not_lost(
    catalog: PlainCatalog,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Meanwhile,
) -> None:
    second, before = snapshots(catalog)[1], references(catalog)
    first_list = table(catalog).snapshots()[0].manifest_list.removeprefix("file://")

    def changed(commit: Callable[[], Any]) -> Any:
        meanwhile(catalog)
        before.update(references(catalog))
        return commit()

    answering(connector, monkeypatch, changed)

    expire(connector, older_than=NOW)

    assert references(catalog) == before
    assert {each[1] for each in before.values()} == set(snapshots(catalog))
    if meanwhile in (_tagged, _rolled_back):
        assert ids(catalog, second) == [0, 1]
    # Pyiceberg's own expiry removes no file.
    left = {first_list} if meanwhile is _expired else set()
    assert stored(catalog) - needed(catalog) == left


@pytest.mark.parametrize("lost", [lost_answer, lost_request])
def test_a_lost_answer(
    catalog: PlainCatalog,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    lost: Callable[[Any], Any],
) -> None:
    replace_all(catalog)
    answering(connector, monkeypatch, lost)

    assert expire(connector, older_than=NOW).snapshots == 6

    assert len(snapshots(catalog)) == 1
    assert stored(catalog) == needed(catalog)


def test_no_file_goes_while_the_outcome_is_unknown(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_all(catalog)
    before, known = stored(catalog), snapshots(catalog)
    answering(connector, monkeypatch, lost_request, lost_request, lost_request)

    code, _ = refusal(lambda: expire(connector, older_than=NOW))

    assert code is ErrorCode.COMMIT_OUTCOME_UNKNOWN
    assert before <= stored(catalog)
    assert snapshots(catalog) == known
    expire(connector, older_than=NOW)
    assert stored(catalog) == needed(catalog)


def test_who_is_always_late_gives_up(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored(catalog)
    answering(connector, monkeypatch, *[refused] * 20)
    assert refusal(lambda: expire(connector, older_than=NOW))[0] is ErrorCode.COMMIT_CONFLICT
    assert stored(catalog) == before


def test_an_ended_task_expires_nothing(catalog: PlainCatalog, connector: Connector) -> None:
    before, known = stored(catalog), snapshots(catalog)

    def ended() -> None:
        raise CommitError(ErrorCode.RUN_GIVEN_UP, "the task has ended.", "Nothing.")

    spec = ExpireSnapshotsSpec(older_than=NOW)

    def work() -> object:
        return care(connector).expire_snapshots(NAME, spec, dry_run=False, require_wanted=ended)

    assert refusal(work)[0] is ErrorCode.RUN_GIVEN_UP
    assert (stored(catalog), snapshots(catalog)) == (before, known)


@pytest.mark.parametrize("call", [2, 3])
def test_the_next_run_finishes_an_interrupted_one(
    catalog: PlainCatalog, connector: Connector, call: int
) -> None:
    replace_all(catalog)
    calls = []

    def interrupted() -> None:
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt

    spec = ExpireSnapshotsSpec(older_than=NOW)
    with pytest.raises(KeyboardInterrupt):
        care(connector).expire_snapshots(NAME, spec, dry_run=False, require_wanted=interrupted)
    assert len(snapshots(catalog)) == 1
    assert stored(catalog) > needed(catalog)

    report = expire(connector)

    assert report.changes
    assert ids(catalog) == [10]
    assert stored(catalog) == needed(catalog)


def test_a_note_that_names_files_of_others_is_refused(
    tmp_path: Path, catalog: PlainCatalog, connector: Connector
) -> None:
    other = tmp_path / "other"
    other.write_text("of somebody else")
    folder = Path(root(catalog), "removal")
    folder.mkdir()
    note = folder / "removal-1.json"
    for path in (str(other), f"{root(catalog)}/../../other"):
        note.write_text(json.dumps({"files": [[path, "data"]]}))
        assert refusal(lambda: expire(connector, older_than=NOW))[0] is (
            ErrorCode.METADATA_UNREADABLE
        )
    assert other.exists()
    _, text = refusal(lambda: expire(connector, older_than=NOW))
    assert f"The note {note} of an interrupted removal names" in text
    assert "Delete the note." in text
