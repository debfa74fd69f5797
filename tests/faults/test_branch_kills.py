"""Beginning, publishing or deleting a branch of a Paimon table dies at each step; then a retry."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import CreateBranchSpec, DeleteBranchSpec, FastForwardSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, TableName
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from tests.faults.drivers import Drivers
from tests.support.paimon_tables import (
    NAME,
    append,
    change_rows,
    create,
    inserts,
    merge,
    read,
    snapshot_ids,
)
from tests.support.turns import has_turn

pytestmark = pytest.mark.slow

_PARTS = 3
BRANCH = TableName("shop", "orders$branch_b")
STATEMENTS: dict[str, Any] = {
    "begin": CreateBranchSpec("c"),
    "publish": FastForwardSpec("b"),
    "delete": DeleteBranchSpec("b"),
}


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a branch that lost a row and got another one."""
    folder = tmp_path_factory.mktemp("seed")
    connector = opened(folder)
    create(connector, {"id": "int", "k": "string"}, ["k"], {"deletion-vectors.enabled": "true"})
    append(connector, [{"id": 1, "k": "x"}, {"id": 2, "k": "x"}], "one")
    assert connector.branches is not None
    connector.branches.create_branch(NAME, CreateBranchSpec("b"))
    branch = connector.metadata.load_table(BRANCH)
    gone = change_rows(branch, rows.DELETE, [{"file": 0, "position": 0}])
    merge(connector, branch, gone, inserts(branch, [{"id": 3, "k": "y"}]), operation_id="change")
    for guard in folder.rglob("consumer-merge-*"):
        guard.unlink()
    return folder


def opened(warehouse: Path) -> Connector:
    return open_connector(CatalogSpec("paimon", str(warehouse)), {})


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("kind", STATEMENTS)
def test_killed_at_each_step(drivers: Drivers, seed: Path, tmp_path: Path, kind: str) -> None:
    warehouse = tmp_path / "warehouse"

    def fresh() -> None:
        shutil.rmtree(warehouse, ignore_errors=True)
        shutil.copytree(seed, warehouse)

    def done(number: int, **how: Any) -> Any:
        catalog, origin = CatalogSpec("paimon", str(warehouse)), Origin(try_number=number)
        request = JobRequest("change", NAME, catalog, STATEMENTS[kind], origin=origin)
        return drivers.do("change", warehouse, request=request.to_json(), **how)

    fresh()
    before = looks(warehouse)
    told = done(1)["value"]
    status, error, report = told["outcome"]
    assert (status, error) == ("committed", "None")
    after, steps = looks(warehouse), told["steps"]
    assert after != before

    for number, (event, path) in enumerate(steps, 1):
        if not has_turn(number, _PARTS):
            continue
        for how in ({"torn": event == "open"}, {"acts": True}):
            fresh()
            died = done(1, step=number, how=how)
            assert died["signal"] == 9, (event, path)
            left = looks(warehouse)
            assert left["main"] in (before["main"], after["main"]), (event, path, how)
            assert left["snapshots"] in (before["snapshots"], after["snapshots"])

            status, error, again = done(2)["value"]["outcome"]

            assert (status, error) == ("committed", "None"), (event, path, how)
            assert looks(warehouse) == after, (event, path, how)
            assert again == report
            assert not list(warehouse.rglob("*.change"))


def looks(warehouse: Path) -> dict[str, Any]:
    """The rows and snapshots of main, and what there is of branches and tags."""
    connector, table = opened(warehouse), warehouse / "shop.db/orders"
    branches = {
        path.name: sorted(p.name for p in path.rglob("[!.]*-*") if p.is_file())
        for path in table.glob("branch/*")
    }
    return {
        "main": read(connector),
        "snapshots": snapshot_ids(connector),
        "tags": sorted(path.name for path in table.glob("tag/tag-*")),
        "branches": branches,
    }
