"""The undo of a run on several tables: all are planned first; kills, retries, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.runtime.permission import Fence
from spark_jobs.run import run
from spark_jobs.spi.connector import Connector
from tests.connectors.undone_tables import changed_tables, ids, undo_request, write
from tests.support.paimon_tables import snapshot_ids

NAMES = [TableName("shop", name) for name in ("one", "two", "three")]


@pytest.fixture
def catalog(tmp_path: Path) -> CatalogSpec:
    return CatalogSpec("paimon", str(tmp_path))


@pytest.fixture
def connector(catalog: CatalogSpec) -> Connector:
    """Three tables, to which the run ``r`` has committed in turn."""
    return changed_tables(catalog, NAMES)


def undo(catalog: CatalogSpec, operation_id: str = "u", try_number: int = 1, **more: Any) -> Any:
    return undo_request(catalog, NAMES, operation_id, try_number, **more)


def done(request: JobRequest) -> JobResult:
    return run(request, None)


def outcomes(result: JobResult) -> dict[str, str]:
    assert result.error is None, result.error
    assert result.undo is not None
    return {each.table: each.outcome for each in result.undo.tables}


BEFORE = {name.table: [1, 2] for name in NAMES}
AFTER = {name.table: [2, 3] for name in NAMES}


def test_all_tables_are_undone_the_newest_commit_first(
    catalog: CatalogSpec, connector: Connector
) -> None:
    preview = done(undo(catalog, "p", dry_run=True))
    assert outcomes(preview) == {f"shop.{each.table}": "planned" for each in NAMES}
    assert ids(connector, NAMES) == AFTER

    result = done(undo(catalog))

    assert list(outcomes(result)) == ["shop.three", "shop.two", "shop.one"]
    assert (result.status, set(outcomes(result).values())) == ("committed", {"undone"})
    assert (result.metrics.inserted, result.metrics.updated, result.metrics.deleted) == (0, 0, 0)
    assert ids(connector, NAMES) == BEFORE
    assert set(outcomes(done(undo(catalog, "u2"))).values()) == {"unchanged"}
    assert done(undo(catalog, "u2", 2)).status == "unchanged"


def test_none_is_changed_if_one_cannot_be_undone(
    catalog: CatalogSpec, connector: Connector
) -> None:
    write(connector, NAMES[1], "x", "other", {3: "x"})

    result = done(undo(catalog))

    assert result.error is not None
    assert result.error.code == "COMMITS_OF_OTHERS"
    assert "shop.two" in result.error.message
    assert "operation x of DAG d, run other, task t" in result.error.message
    assert ids(connector, NAMES) == AFTER
    preview = outcomes(done(undo(catalog, "p", dry_run=True)))
    assert preview == {"shop.three": "planned", "shop.one": "planned", "shop.two": "refused"}

    result = done(undo(catalog, "s", on_refused="skip"))

    assert outcomes(result) == {
        "shop.three": "undone",
        "shop.one": "undone",
        "shop.two": "refused",
    }
    assert ids(connector, NAMES) == {**BEFORE, "two": AFTER["two"]}


class KilledError(BaseException):
    """The driver died."""


@pytest.mark.parametrize("publications", [0, 1, 2, 3])
def test_a_killed_undo_is_finished_by_a_retry(
    catalog: CatalogSpec,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    publications: int,
) -> None:
    from spark_jobs.connectors.paimon.commit import publish

    real, left = publish.SnapshotFiles.publish, [publications]

    def killed(self: Any, *arguments: Any) -> bool:
        if not left[0]:
            raise KilledError
        left[0] -= 1
        found = real(self, *arguments)
        if not left[0]:
            raise KilledError
        return found

    monkeypatch.setattr(publish.SnapshotFiles, "publish", killed)
    with pytest.raises(KilledError):
        done(undo(catalog))
    monkeypatch.undo()
    some = ids(connector, NAMES)
    assert sum(some[each] == [1, 2] for each in some) == publications

    result = done(undo(catalog, try_number=2))

    assert set(outcomes(result).values()) == {"undone"}
    assert ids(connector, NAMES) == BEFORE
    assert all(len(snapshot_ids(connector, name)) == 3 for name in NAMES)


def test_a_try_that_was_given_up_publishes_nothing(
    catalog: CatalogSpec, connector: Connector
) -> None:
    request = undo(catalog)
    later = replace(request, origin=replace(request.origin, try_number=2))
    Fence.of(later, connector.storage).enter()

    result = done(request)

    assert result.error is not None
    assert result.error.code == "RUN_GIVEN_UP"
    assert ids(connector, NAMES) == AFTER


def test_what_others_change_meanwhile_is_told_with_what_is_done(
    catalog: CatalogSpec, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.connectors.paimon.maintenance import undo as module

    real: Callable[..., Any] = module.PaimonUndo.undone

    def undone(self: Any, name: TableName, undoing: Any) -> Any:
        found = real(self, name, undoing)
        if name.table == "three":
            write(connector, NAMES[1], "x", "other", {3: "x"})
        return found

    monkeypatch.setattr(module.PaimonUndo, "undone", undone)

    result = done(undo(catalog))

    assert result.error is not None
    assert result.error.code == "COMMITS_OF_OTHERS"
    assert "Undone before that: shop.three." in result.error.message
    monkeypatch.undo()
    assert ids(connector, NAMES) == {**AFTER, "three": [1, 2]}
    again = outcomes(done(undo(catalog, "s", on_refused="skip")))
    assert again == {"shop.one": "undone", "shop.two": "refused", "shop.three": "unchanged"}


def test_a_mark_that_is_moved_behind_the_plan_is_in_the_way(
    catalog: CatalogSpec, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.connectors.paimon.maintenance import undo as module

    mark, real = {"merge.mark.m": "{}"}, module.PaimonUndo.undone
    write(connector, NAMES[0], "r-more", "r", {7: "m"}, mark)

    def undone(self: Any, name: TableName, undoing: Any) -> Any:
        if name == NAMES[0]:
            write(connector, name, "x", "later", {8: "m"}, mark)
        return real(self, name, undoing)

    monkeypatch.setattr(module.PaimonUndo, "undone", undone)

    result = done(undo(catalog, on_refused="skip"))

    assert outcomes(result)["shop.one"] == "refused"
    assert ids(connector, NAMES)["one"] == [2, 3, 7, 8]
