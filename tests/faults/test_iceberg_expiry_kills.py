"""An expiry of an Iceberg table dies at each of its steps; what is there still reads.

A run takes one of the catalogs, a third of the steps, and the request to commit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults.drivers import Drivers
from tests.faults.iceberg import (
    IcebergMatrix,
    IcebergWork,
    files_of,
    needed_files,
    path_of,
    server_of,
)
from tests.faults.merges import OLD
from tests.support.paimon_tables import NAME
from tests.support.turns import has_turn

pytestmark = pytest.mark.slow

_PARTS = 3


class Expiries:
    """Tables whose snapshots expire, always of the same history."""

    def __init__(self, matrix: IcebergMatrix) -> None:
        work = matrix.works["merge"]
        assert isinstance(work, IcebergWork)
        self._matrix, self.work = matrix, work

    def fresh(self) -> Path:
        """Five snapshots; a tag names the first, the last has replaced all rows."""
        warehouse = self._matrix._fresh("merge")
        for _ in range(2):
            self.table.overwrite(self.table.scan().to_arrow())
        self.table.manage_snapshots().create_tag(
            self.table.snapshots()[0].snapshot_id, "t"
        ).commit()
        return warehouse

    @property
    def table(self) -> Any:
        """Pyiceberg's, as it is now."""
        library = self.work.library(self._matrix.place)
        return library.load_table((NAME.database, NAME.table))

    def unneeded(self, warehouse: Path) -> set[str]:
        """The files that nothing needs; checks that those are there which something needs."""
        needed = needed_files(self.table)
        files = files_of(Path(path_of(self.table.location())))
        assert needed <= files
        assert self.table.scan().to_arrow().num_rows == len(OLD)
        return files - needed


@pytest.fixture(params=["rest", "sql", "glue"])
def expiries(request: pytest.FixtureRequest, drivers: Drivers, tmp_path: Path) -> Expiries:
    """Tables of a REST catalog, of one in SQLite, and of Glue."""
    return Expiries(IcebergMatrix.on(drivers, tmp_path, server_of(request, request.param)))


@pytest.mark.by_turns(3)
def test_killed_at_each_step(drivers: Drivers, expiries: Expiries) -> None:
    work = expiries.work
    warehouse = expiries.fresh()
    steps = drivers.do("expiry steps", warehouse, work)["value"]
    assert expiries.unneeded(warehouse) == set()
    assert len(expiries.table.snapshots()) == 2
    assert sum(event == "os.remove" for event, _ in steps) > 8
    asked = [event for event, _ in steps].index("merge.asked") + 1

    for number, (event, path) in enumerate(steps, 1):
        if number not in (asked, asked + 1) and not has_turn(number, _PARTS):
            continue
        hows = [{"torn": False}]
        hows += [{"torn": True}] if event == "open" else []
        hows += [{"acts": True}] if number == asked else []
        for how in hows:
            warehouse = expiries.fresh()
            died = drivers.do("die expiring", warehouse, work, step=number, how=how)
            assert died["signal"] == 9, (event, path)
            expiries.unneeded(warehouse)
            assert drivers.do("expire", warehouse, work)["value"] is None
            assert expiries.unneeded(warehouse) == set(), (event, path, how)
            assert set(expiries.table.metadata.refs) == {"main", "t"}
            assert len(expiries.table.snapshots()) == 2


@pytest.mark.by_turns(3)
def test_storage_and_catalogs_that_fail_are_told(drivers: Drivers, expiries: Expiries) -> None:
    work = expiries.work
    steps = drivers.do("expiry steps", expiries.fresh(), work)["value"]
    for number, (event, path) in enumerate(steps, 1):
        if path.endswith(".clock") or not has_turn(number, _PARTS):
            continue
        warehouse = expiries.fresh()
        drivers.do("fail expiring", warehouse, work, step=number, acts=number % 2 == 0)
        expiries.unneeded(warehouse)
        assert drivers.do("expire", warehouse, work)["value"] is None
        assert expiries.unneeded(warehouse) == set(), (event, path)
