"""Tags and rollback: one commit each, that replaces and loses nothing of others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    RollbackSpec,
)
from spark_jobs.contract.properties import DAG_ID
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.answers import answering, lost_answer, lost_request
from tests.connectors.iceberg.plain_history import (
    NAME,
    SCHEMA,
    append,
    care,
    ids,
    made,
    references,
    refusal,
    snapshots,
    table,
)
from tests.connectors.iceberg.plain_tables import PlainCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """Three snapshots, which append the ids 0, 1 and 2."""
    return made(tmp_path)


def roll_back(connector: Connector, spec: RollbackSpec, dag_id: str = "d") -> Any:
    return care(connector).roll_back(NAME, spec, dag_id=dag_id, dry_run=False)


def test_tags_name_the_newest_snapshot_or_another_one(
    catalog: PlainCatalog, connector: Connector
) -> None:
    first, _, newest = snapshots(catalog)

    made = care(connector).create_tag(NAME, CreateTagSpec("daily", retention="2 d"))
    care(connector).create_tag(NAME, CreateTagSpec("begin", snapshot_id=first))

    assert made.snapshot_id == newest
    days = int(timedelta(days=2).total_seconds()) * 1000
    assert references(catalog) == {
        "main": ("branch", newest, None),
        "daily": ("tag", newest, days),
        "begin": ("tag", first, None),
    }
    assert ids(catalog) == [0, 1, 2]


def test_a_tag_of_a_branch_names_the_head_of_the_branch(
    catalog: PlainCatalog, connector: Connector
) -> None:
    first = snapshots(catalog)[0]
    table(catalog).manage_snapshots().create_branch(first, "audit").commit()

    care(connector).create_tag(TableName("db", "t$branch_audit"), CreateTagSpec("audited"))

    assert references(catalog)["audited"] == ("tag", first, None)


def test_nothing_is_replaced_by_a_tag(catalog: PlainCatalog, connector: Connector) -> None:
    first = snapshots(catalog)[0]
    manage = table(catalog).manage_snapshots()
    manage.create_tag(first, "daily").create_branch(first, "audit").commit()
    before, maintenance = references(catalog), care(connector)

    for tag, kind in (("daily", "tag"), ("audit", "branch"), ("main", "branch")):
        code, text = refusal(lambda tag=tag: maintenance.create_tag(NAME, CreateTagSpec(tag)))
        assert code is ErrorCode.TAG_EXISTS
        assert f"db.t has a {kind} {tag} already" in text
    spec = CreateTagSpec("daily", if_not_exists=True)
    assert not maintenance.create_tag(NAME, spec).changes
    missing = CreateTagSpec("new", snapshot_id=77)
    assert refusal(lambda: maintenance.create_tag(NAME, missing))[0] is ErrorCode.SNAPSHOT_NOT_FOUND
    assert references(catalog) == before


def test_a_retention_of_no_time_is_refused(catalog: PlainCatalog, connector: Connector) -> None:
    spec = CreateTagSpec("daily", retention="0 d")

    code, text = refusal(lambda: care(connector).create_tag(NAME, spec))

    assert code is ErrorCode.REQUEST_INVALID
    assert "retention: '0 d' is no time at all" in text
    assert "daily" not in references(catalog)


def test_a_table_without_snapshots_has_nothing_to_tag(tmp_path: Path) -> None:
    empty = PlainCatalog(tmp_path)
    empty.create(SCHEMA, {"format-version": "2"}, None)

    code, text = refusal(lambda: care(empty.open()).create_tag(NAME, CreateTagSpec("daily")))

    assert code is ErrorCode.SNAPSHOT_NOT_FOUND
    assert "does not have any snapshot" in text


def test_a_tag_of_somebody_who_was_faster_stays(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = snapshots(catalog)[0]

    def tagged_meanwhile(commit: Callable[[], Any]) -> Any:
        table(catalog).manage_snapshots().create_tag(first, "daily").commit()
        return commit()

    answering(connector, monkeypatch, tagged_meanwhile)

    code, text = refusal(lambda: care(connector).create_tag(NAME, CreateTagSpec("daily")))

    assert code is ErrorCode.COMMIT_CONFLICT
    assert "somebody else changed the tag daily" in text
    assert references(catalog)["daily"] == ("tag", first, None)


@pytest.mark.parametrize("lost", [lost_answer, lost_request])
def test_what_a_lost_answer_did_is_found(
    catalog: PlainCatalog,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    lost: Callable[[Any], Any],
) -> None:
    newest, maintenance = snapshots(catalog)[-1], care(connector)

    answering(connector, monkeypatch, lost)
    assert maintenance.create_tag(NAME, CreateTagSpec("daily")).snapshot_id == newest
    assert references(catalog)["daily"] == ("tag", newest, None)
    answering(connector, monkeypatch, lost)
    assert maintenance.delete_tag(NAME, DeleteTagSpec("daily"), dry_run=False).tags == 1
    assert "daily" not in references(catalog)


def test_no_answer_at_all_is_told(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(connector, monkeypatch, lost_request, lost_request, lost_request)

    code, _ = refusal(lambda: care(connector).create_tag(NAME, CreateTagSpec("daily")))

    assert code is ErrorCode.COMMIT_OUTCOME_UNKNOWN
    assert "daily" not in references(catalog)


def test_tags_are_deleted_by_name(catalog: PlainCatalog, connector: Connector) -> None:
    maintenance, first = care(connector), snapshots(catalog)[0]
    manage = table(catalog).manage_snapshots()
    manage.create_tag(first, "daily").create_branch(first, "audit").commit()
    before = references(catalog)

    assert maintenance.delete_tag(NAME, DeleteTagSpec("daily"), dry_run=True).tags == 1
    assert references(catalog) == before
    for name in ("nightly", "audit", "main"):
        code, text = refusal(
            lambda name=name: maintenance.delete_tag(NAME, DeleteTagSpec(name), dry_run=False)
        )
        assert code is ErrorCode.TAG_NOT_FOUND
        assert "Use one of its tags: daily" in text
    spec = DeleteTagSpec("nightly", if_exists=True)
    assert not maintenance.delete_tag(NAME, spec, dry_run=False).changes
    assert references(catalog) == before
    assert maintenance.delete_tag(NAME, DeleteTagSpec("daily"), dry_run=False).tags == 1
    assert references(catalog).keys() == {"main", "audit"}
    assert len(snapshots(catalog)) == 3


def test_tags_go_whose_retention_is_over(catalog: PlainCatalog, connector: Connector) -> None:
    hour, newest = 3_600_000, snapshots(catalog)[-1]
    manage = table(catalog).manage_snapshots()
    manage.create_tag(newest, "short", hour).create_tag(newest, "long", 9 * hour)
    manage.create_tag(newest, "as the table says").commit()

    def left(hours: float) -> set[str]:
        care(connector, hours).delete_tag(NAME, DeleteTagSpec(None), dry_run=False)
        return references(catalog).keys() - {"main"}

    assert left(0.5) == {"short", "long", "as the table says"}
    assert left(2) == {"long", "as the table says"}
    assert left(8.9) == {"long", "as the table says"}
    with table(catalog).transaction() as change:
        change.set_properties({"history.expire.max-ref-age-ms": str(hour)})
    assert left(8.9) == {"long"}
    assert left(10) == set()


def test_a_branch_goes_back_to_a_snapshot_or_a_tag(
    catalog: PlainCatalog, connector: Connector
) -> None:
    first, second, newest = snapshots(catalog)
    table(catalog).manage_snapshots().create_tag(newest, "newest").create_tag(
        first, "begin"
    ).commit()

    report = roll_back(connector, RollbackSpec(second, force=True))

    assert (report.snapshots, report.latest_snapshot_id) == (1, second)
    assert report.earliest_snapshot_id == first
    assert ids(catalog) == [0, 1]
    # What a tag names stays readable.
    assert table(catalog).scan(snapshot_id=newest).to_arrow().num_rows == 3
    assert roll_back(connector, RollbackSpec(tag="begin", force=True)).snapshots == 1
    assert ids(catalog) == [0]
    assert not roll_back(connector, RollbackSpec(first)).changes
    append(catalog, 7)
    assert ids(catalog) == [0, 7]


def test_a_dry_run_moves_nothing(catalog: PlainCatalog, connector: Connector) -> None:
    first = snapshots(catalog)[0]

    spec = RollbackSpec(first, force=True)
    report = care(connector).roll_back(NAME, spec, dag_id="d", dry_run=True)

    assert report.snapshots == 2
    assert ids(catalog) == [0, 1, 2]


def test_what_others_committed_stays_unless_forced(
    catalog: PlainCatalog, connector: Connector
) -> None:
    first, second, newest = snapshots(catalog)

    code, text = refusal(lambda: roll_back(connector, RollbackSpec(first)))

    assert code is ErrorCode.COMMITS_OF_OTHERS
    assert f"snapshot {newest} (append) of another writer" in text
    assert f"snapshot {second} (append)" in text
    assert ids(catalog) == [0, 1, 2]


def test_commits_of_the_same_dag_go(catalog: PlainCatalog, connector: Connector) -> None:
    newest = snapshots(catalog)[-1]
    properties = {DAG_ID: "d"}
    rows = pa.table({"id": [3]}, schema=SCHEMA)
    table(catalog).append(rows, snapshot_properties=properties)

    code, text = refusal(lambda: roll_back(connector, RollbackSpec(newest), dag_id="e"))
    assert code is ErrorCode.COMMITS_OF_OTHERS
    assert "of DAG d" in text
    assert roll_back(connector, RollbackSpec(newest), dag_id="d").snapshots == 1
    assert ids(catalog) == [0, 1, 2]


def test_where_a_branch_never_was_it_does_not_go(
    catalog: PlainCatalog, connector: Connector
) -> None:
    second, newest = snapshots(catalog)[1:]
    roll_back(connector, RollbackSpec(second, force=True))

    for spec, problem in (
        (RollbackSpec(newest, force=True), "is not in the history of the branch main"),
        (RollbackSpec(77, force=True), "does not have a snapshot 77"),
    ):
        code, text = refusal(lambda spec=spec: roll_back(connector, spec))
        assert code is ErrorCode.SNAPSHOT_NOT_FOUND
        assert problem in text
    code, _ = refusal(lambda: roll_back(connector, RollbackSpec(tag="daily", force=True)))
    assert code is ErrorCode.TAG_NOT_FOUND
    assert ids(catalog) == [0, 1]


@pytest.mark.parametrize("force", [False, True])
def test_a_commit_meanwhile_goes_only_by_force(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    newest = snapshots(catalog)[-1]
    rows = pa.table({"id": [3]}, schema=SCHEMA)
    table(catalog).append(rows, snapshot_properties={DAG_ID: "d"})

    def appended_meanwhile(commit: Callable[[], Any]) -> Any:
        append(catalog, 4)
        return commit()

    answering(connector, monkeypatch, appended_meanwhile)

    if force:
        assert roll_back(connector, RollbackSpec(newest, force=True)).snapshots == 2
        assert ids(catalog) == [0, 1, 2]
    else:
        code, _ = refusal(lambda: roll_back(connector, RollbackSpec(newest)))
        assert code is ErrorCode.COMMITS_OF_OTHERS
        assert ids(catalog) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("lost", [lost_answer, lost_request])
def test_a_rollback_whose_answer_is_lost(
    catalog: PlainCatalog,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    lost: Callable[[Any], Any],
) -> None:
    second = snapshots(catalog)[1]
    answering(connector, monkeypatch, lost)

    roll_back(connector, RollbackSpec(second, force=True))

    assert ids(catalog) == [0, 1]


def test_what_others_append_after_a_lost_answer_stays(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = snapshots(catalog)[1]

    def lost_before_an_append(commit: Callable[[], Any]) -> Any:
        commit()
        append(catalog, 4)
        raise ConnectionError("the answer was lost")

    answering(connector, monkeypatch, lost_before_an_append)

    assert roll_back(connector, RollbackSpec(second, force=True)).snapshots == 1
    assert ids(catalog) == [0, 1, 4]
