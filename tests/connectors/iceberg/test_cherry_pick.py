"""A staged snapshot is published once, on what it fits; without a JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contract.maintenance import CherryPickSpec
from spark_jobs.contract.properties import OPERATION_ID, REQUEST_DIGEST
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.branches import Publishing
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.answers import answering, lost_answer, lost_request
from tests.connectors.iceberg.plain_history import (
    NAME,
    SCHEMA,
    append,
    ids,
    made,
    references,
    refusal,
    snapshots,
    stored,
    table,
)
from tests.connectors.iceberg.plain_tables import PlainCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """Two snapshots, which append the ids 0 and 1."""
    return made(tmp_path, 2)


def stage(catalog: PlainCatalog, id_: int, wap_id: str | None = None, **told: str) -> int:
    """A snapshot on the head, and on no branch."""
    head = table(catalog).current_snapshot().snapshot_id
    table(catalog).manage_snapshots().create_branch(head, "staging").commit()
    properties = told if wap_id is None else {"wap.id": wap_id, **told}
    rows = pa.table({"id": [id_]}, schema=SCHEMA)
    table(catalog).append(rows, branch="staging", snapshot_properties=properties)
    staged: int = references(catalog)["staging"][1]
    table(catalog).manage_snapshots().remove_branch("staging").commit()
    return staged


def pick(
    connector: Connector, operation_id: str = "op", name: TableName = NAME, **spec: Any
) -> Any:
    assert connector.branches is not None
    publishing = Publishing({OPERATION_ID: operation_id, REQUEST_DIGEST: "d"})
    return connector.branches.cherry_pick(name, CherryPickSpec(**spec), publishing, dry_run=False)


def newest(catalog: PlainCatalog) -> Any:
    return table(catalog).current_snapshot()


def test_what_was_staged_on_the_head_becomes_the_head(
    catalog: PlainCatalog, connector: Connector
) -> None:
    staged = stage(catalog, 7)

    report = pick(connector, snapshot_id=staged)

    assert (report.snapshot_id, newest(catalog).snapshot_id) == (staged, staged)
    assert ids(catalog) == [0, 1, 7]
    assert references(catalog).keys() == {"main"}


def test_an_append_is_replayed_once(catalog: PlainCatalog, connector: Connector) -> None:
    staged = stage(catalog, 7, "nightly")
    append(catalog, 2)

    report = pick(connector, wap_id="nightly")

    head = newest(catalog)
    assert (report.snapshot_id, report.changes) == (head.snapshot_id, True)
    assert head.snapshot_id != staged
    assert head.summary["published-wap-id"] == "nightly"
    assert head.summary["source-snapshot-id"] == str(staged)
    assert (head.summary["added-data-files"], head.summary["total-records"]) == ("1", "4")
    assert ids(catalog) == [0, 1, 2, 7]
    assert references(catalog).keys() == {"main"}
    # A retry of the same work, whose result was lost, is told the same; other work is refused.
    assert pick(connector, wap_id="nightly") == report
    for spec in ({"wap_id": "nightly"}, {"snapshot_id": staged}):
        code, text = refusal(lambda spec=spec: pick(connector, "other", **spec))
        assert code is ErrorCode.ALREADY_PUBLISHED
        assert "wap.id nightly is that of snapshot" in text
    assert ids(catalog) == [0, 1, 2, 7]


def test_tables_of_version_1_too(tmp_path: Path) -> None:
    old = made(tmp_path, 1, **{"format-version": "1"})
    staged = stage(old, 7)
    append(old, 2)

    pick(old.open(), snapshot_id=staged)

    assert ids(old) == [0, 2, 7]


def test_one_without_a_wap_id_is_replayed_once(catalog: PlainCatalog, connector: Connector) -> None:
    staged = stage(catalog, 7)
    append(catalog, 2)
    done = pick(connector, snapshot_id=staged)

    code, text = refusal(lambda: pick(connector, "other", snapshot_id=staged))
    assert code is ErrorCode.ALREADY_PUBLISHED
    assert f"it became snapshot {done.snapshot_id}" in text
    code, text = refusal(lambda: pick(connector, "other", snapshot_id=snapshots(catalog)[0]))
    assert code is ErrorCode.ALREADY_PUBLISHED
    assert "it is in the history of main" in text


def test_what_does_not_fit_is_refused(catalog: PlainCatalog, connector: Connector) -> None:
    stage(catalog, 7, "twice")
    stage(catalog, 8, "twice")
    marked = stage(catalog, 9, **{"merge.mark.m": "{}"})
    head = newest(catalog).snapshot_id
    table(catalog).manage_snapshots().create_branch(head, "staging").commit()
    table(catalog).delete("id = 0", branch="staging")
    deleted = references(catalog)["staging"][1]
    append(catalog, 2)
    before = stored(catalog)

    for spec, expected, problem in (
        ({"snapshot_id": 77}, ErrorCode.SNAPSHOT_NOT_FOUND, "does not have a snapshot 77"),
        ({"wap_id": "lost"}, ErrorCode.SNAPSHOT_NOT_FOUND, "of the wap.id lost"),
        ({"wap_id": "twice"}, ErrorCode.REQUEST_INVALID, "have the wap.id twice"),
        ({"snapshot_id": marked}, ErrorCode.BRANCHES_DIVERGED, "it moved the mark of a source"),
        ({"snapshot_id": deleted}, ErrorCode.BRANCHES_DIVERGED, "it is neither an append nor"),
    ):
        code, text = refusal(lambda spec=spec: pick(connector, **spec))
        assert code is expected
        assert problem in text
    assert ids(catalog) == [0, 1, 2]
    assert stored(catalog) == before


def test_a_branch_gets_it(catalog: PlainCatalog, connector: Connector) -> None:
    first = snapshots(catalog)[0]
    staged = stage(catalog, 7)
    table(catalog).manage_snapshots().create_branch(first, "audit").commit()

    pick(connector, name=TableName("db", "t$branch_audit"), snapshot_id=staged)

    assert ids(catalog) == [0, 1]
    assert ids(catalog, references(catalog)["audit"][1]) == [0, 7]


@pytest.mark.parametrize("is_on_head", [True, False])
@pytest.mark.parametrize("lost", [lost_answer, lost_request])
def test_a_lost_answer_publishes_once(
    catalog: PlainCatalog,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    lost: Callable[[Any], Any],
    is_on_head: bool,
) -> None:
    staged = stage(catalog, 7)
    if not is_on_head:
        append(catalog, 2)
    answering(connector, monkeypatch, lost)

    pick(connector, snapshot_id=staged)

    assert ids(catalog) == ([0, 1, 7] if is_on_head else [0, 1, 2, 7])


@pytest.mark.parametrize("is_on_head", [True, False])
def test_it_goes_behind_what_others_append_meanwhile(
    catalog: PlainCatalog,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    is_on_head: bool,
) -> None:
    staged = stage(catalog, 7)
    if not is_on_head:
        append(catalog, 2)

    def appended_meanwhile(commit: Callable[[], Any]) -> Any:
        append(catalog, 3)
        return commit()

    answering(connector, monkeypatch, appended_meanwhile)

    pick(connector, snapshot_id=staged)

    assert ids(catalog) == sorted([0, 1, 3, 7] + ([] if is_on_head else [2]))


def test_nothing_is_published_of_what_expires_meanwhile(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = stage(catalog, 7)
    append(catalog, 2)

    def expired_meanwhile(commit: Callable[[], Any]) -> Any:
        table(catalog).maintenance.expire_snapshots().by_id(staged).commit()
        return commit()

    answering(connector, monkeypatch, expired_meanwhile)

    refusal(lambda: pick(connector, snapshot_id=staged))

    assert ids(catalog) == [0, 1, 2]
    code, _ = refusal(lambda: pick(connector, snapshot_id=staged))
    assert code is ErrorCode.SNAPSHOT_NOT_FOUND
