"""An undo that was approved takes back exactly that, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.run import run
from spark_jobs.spi.connector import Connector
from tests.connectors.undone_tables import changed_tables, ids, undo_request, write
from tests.support.paimon_tables import append_with_pypaimon
from tests.support.undone_runs import undone

NAMES = [TableName("shop", name) for name in ("one", "two")]
BEFORE = {"one": [1, 2], "two": [1, 2]}
AFTER = {"one": [2, 3], "two": [2, 3]}


@pytest.fixture
def catalog(tmp_path: Path) -> CatalogSpec:
    return CatalogSpec("paimon", str(tmp_path))


@pytest.fixture
def connector(catalog: CatalogSpec) -> Connector:
    """Two tables, to which the run ``r`` has committed."""
    return changed_tables(catalog, NAMES)


def request(catalog: CatalogSpec, operation_id: str = "u", **more: Any) -> JobRequest:
    names = more.pop("tables", NAMES)
    return undo_request(catalog, names, operation_id, more.pop("number", 1), **more)


def previewed(catalog: CatalogSpec, **more: Any) -> JobResult:
    found = run(request(catalog, "p", dry_run=True, **more), None)
    assert (found.error, found.ticket is None) == (None, False)
    return found


def test_what_was_approved_is_taken_back(catalog: CatalogSpec, connector: Connector) -> None:
    ticket = previewed(catalog).ticket
    # What others do elsewhere does not matter.
    rows = [{"id": 100, "s": "x"}]
    append_with_pypaimon(connector.metadata.load_table(NAMES[0]), rows)

    done = run(request(catalog, approved=ticket), None)

    assert (done.status, done.error) == ("committed", None)
    assert ids(connector, NAMES) == {**BEFORE, "one": [1, 2, 100]}
    again = run(request(catalog, approved=ticket, number=2), None)
    assert (again.status, again.error) == ("committed", None)


_WAS = "of the run, snapshot 2 and what is before it (3 files) would have been taken back, and"
CHANGES: dict[str, tuple[Callable[[Connector], Any], str]] = {
    "more of the run": (
        lambda connector: write(connector, NAMES[1], "r-more", "r", {4: "b"}),
        f"shop.two: {_WAS} snapshot 3 and what is before it (4 files) would be now",
    ),
    "less of the run": (
        lambda connector: undone(connector, NAMES[0], "r", "other"),
        f"shop.one: {_WAS} nothing would be now",
    ),
    "built on": (
        lambda connector: write(connector, NAMES[1], "x", "other", {3: "x"}),
        "shop.two can not be undone any more: ",
    ),
}


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("on_refused", ["fail", "skip"])
def test_what_is_not_the_same_is_named_and_nothing_is_done(
    change: str, on_refused: str, catalog: CatalogSpec, connector: Connector
) -> None:
    ticket = previewed(catalog, on_refused=on_refused).ticket
    work, told = CHANGES[change]
    work(connector)
    before = ids(connector, NAMES)

    done = run(request(catalog, approved=ticket, on_refused=on_refused), None)

    assert done.error is not None
    assert (done.error.code, done.error.retryable) == ("APPROVAL_STALE", False)
    assert told in done.error.message
    assert ids(connector, NAMES) == before


def test_another_run_or_other_tables_are_named(catalog: CatalogSpec, connector: Connector) -> None:
    ticket, one = previewed(catalog).ticket, previewed(catalog, tables=NAMES[:1]).ticket
    cases = {
        "other than in the dry run: statement": {"approved": ticket, "run_id": "base"},
        "shop.two had no commit of the run": {"approved": one},
        "shop.two has none any more": {"approved": ticket, "tables": NAMES[:1]},
    }
    for told, more in cases.items():
        done = run(request(catalog, **more), None)
        assert done.error is not None
        assert done.error.code == "APPROVAL_STALE"
        assert told in done.error.message
    assert ids(connector, NAMES) == AFTER


def test_what_the_run_commits_meanwhile_is_not_taken_back(
    catalog: CatalogSpec, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.connectors.paimon.commit import publish

    ticket, real = previewed(catalog).ticket, publish.SnapshotFiles.publish

    def late(self: Any, *arguments: Any) -> bool:
        monkeypatch.undo()
        found = real(self, *arguments)
        write(connector, NAMES[0], "late", "r", {9: "b"})
        return found

    monkeypatch.setattr(publish.SnapshotFiles, "publish", late)

    done = run(request(catalog, approved=ticket), None)

    assert done.error is not None
    assert done.error.code == "APPROVAL_STALE"
    assert done.error.message.endswith(
        "Nothing was done to shop.one. Undone before that: shop.two."
    )
    assert ids(connector, NAMES) == {"one": [2, 3, 9], "two": [1, 2]}


def test_a_retry_does_the_rest(
    catalog: CatalogSpec, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.connectors.paimon.commit import publish

    class KilledError(BaseException):
        """The driver died."""

    ticket, real = previewed(catalog).ticket, publish.SnapshotFiles.publish

    def once(self: Any, *arguments: Any) -> bool:
        real(self, *arguments)
        raise KilledError

    monkeypatch.setattr(publish.SnapshotFiles, "publish", once)
    with pytest.raises(KilledError):
        run(request(catalog, approved=ticket), None)
    monkeypatch.undo()

    done = run(request(catalog, approved=ticket, number=2), None)

    assert (done.status, done.error) == ("committed", None)
    assert ids(connector, NAMES) == BEFORE


def test_a_ticket_of_a_statement_is_refused(catalog: CatalogSpec, connector: Connector) -> None:
    ticket = previewed(catalog).ticket
    assert ticket is not None
    other = replace(ticket, sources={})
    done = run(request(catalog, approved=other), None)
    assert done.error is not None
    assert done.error.code == "APPROVAL_STALE"
    assert ids(connector, NAMES) == AFTER
