"""A change of tags, branches, columns or staged snapshots dies at each step; then it is retried.

A run takes one of the catalogs, a part of the steps, and the request to commit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.alter_table import (
    AddColumn,
    AddPartitionField,
    AlterTableSpec,
    RenameColumn,
    SetProperties,
)
from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    CreateTagSpec,
    RollbackSpec,
)
from spark_jobs.contract.request import JobRequest, Origin
from tests.faults.drivers import Drivers
from tests.faults.iceberg import IcebergMatrix, IcebergWork, server_of
from tests.faults.merges import OLD
from tests.support.paimon_tables import NAME
from tests.support.turns import has_turn

pytestmark = pytest.mark.slow

_PARTS = 4


class Changes:
    """Tables of one history: a snapshot, one that is staged, and two more."""

    def __init__(self, matrix: IcebergMatrix, drivers: Drivers) -> None:
        work = matrix.works["merge"]
        assert isinstance(work, IcebergWork)
        self._matrix, self._drivers, self._work = matrix, drivers, work
        self.warehouse = Path()

    def fresh(self) -> None:
        """A new table, always at one and the same path."""
        self.warehouse = self._matrix._fresh("merge")
        rows = self.table.scan().to_arrow()
        first = self.table.current_snapshot().snapshot_id
        self.table.manage_snapshots().create_branch(first, "staging").commit()
        self.table.append(rows, branch="staging")
        self.table.manage_snapshots().remove_branch("staging").commit()
        self.table.append(rows)
        self.table.append(rows)

    @property
    def table(self) -> Any:
        """Pyiceberg's, as it is now."""
        library = self._work.library(self._matrix.place)
        return library.load_table((NAME.database, NAME.table))

    @property
    def snapshots(self) -> list[int]:
        return [each.snapshot_id for each in self.table.snapshots()]

    def done(self, statement: Any, number: int = 1, **how: Any) -> Any:
        """The answer of a try, which may die."""
        catalog, origin = self._work.catalog(self._matrix.place), Origin(try_number=number)
        request = JobRequest("change", NAME, catalog, statement, origin=origin)
        text = request.to_json()
        return self._drivers.do("change", self.warehouse, self._work, request=text, **how)

    def looks(self) -> tuple[list[str], int, int, list[str]]:
        """The names of tags and branches, the rows, the number of snapshots, columns and more."""
        table = self.table
        columns = [f"{each.name}: {each.field_id}" for each in table.schema().fields]
        more = [str(len(table.metadata.schemas)), str(table.properties.get("p")), str(table.spec())]
        rows = table.scan().to_arrow().num_rows
        return sorted(table.metadata.refs), rows, len(table.snapshots()), columns + more


@pytest.fixture(params=["rest", "sql", "glue"])
def changes(request: pytest.FixtureRequest, drivers: Drivers, tmp_path: Path) -> Changes:
    """Tables of a REST catalog, of one in SQLite, and of Glue."""
    return Changes(IcebergMatrix.on(drivers, tmp_path, server_of(request, request.param)), drivers)


def statement(kind: str, changes: Changes) -> Any:
    first, staged = changes.snapshots[:2]
    return {
        "tag": CreateTagSpec("daily"),
        "branch": CreateBranchSpec("audit", first, None, "9 d"),
        "rollback": RollbackSpec(first, force=True),
        "cherry-pick": CherryPickSpec(staged),
        "alter": AlterTableSpec(
            (
                RenameColumn("v", "w"),
                AddColumn("v", "INT"),
                SetProperties({"p": "q"}),
                AddPartitionField("bucket(2, id)"),
            )
        ),
    }[kind]


@pytest.mark.by_turns(6)
@pytest.mark.parametrize("kind", ["tag", "rollback", "cherry-pick", "branch", "alter"])
def test_killed_at_each_step(changes: Changes, kind: str) -> None:
    changes.fresh()
    before = changes.looks()
    told = changes.done(statement(kind, changes))["value"]
    status, error, report = told["outcome"]
    assert (status, error) == ("committed", "None")
    after, steps = changes.looks(), told["steps"]
    assert after != before
    assert after[1] == len(OLD) * {"rollback": 1, "cherry-pick": 4}.get(kind, 3)
    asked = [event for event, _ in steps].index("merge.asked") + 1

    for number, (event, path) in enumerate(steps, 1):
        if number not in (asked, asked + 1) and not has_turn(number, _PARTS):
            continue
        hows = [{"torn": event == "open"}]
        hows += [{"acts": True}] if number == asked else []
        for how in hows:
            changes.fresh()
            made = statement(kind, changes)
            died = changes.done(made, step=number, how=how)
            assert died["signal"] == 9, (event, path)
            assert changes.looks() in (before, after), (event, path, how)

            status, error, again = changes.done(made, 2)["value"]["outcome"]

            assert (status, error) == ("committed", "None"), (event, path, how)
            assert changes.looks() == after, (event, path, how)
            assert _counts(again) == _counts(report)
            assert not list(changes.warehouse.rglob("*.change"))


def _counts(report: dict[str, Any]) -> dict[str, Any]:
    """What is the same on another table of this history."""
    return {name: value for name, value in report.items() if not name.endswith("snapshot_id")}
