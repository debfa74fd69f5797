"""A retry of table care whose job was killed before its result was stored tells what was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    CreateTagSpec,
    DeleteBranchSpec,
    DeleteTagSpec,
    FastForwardSpec,
    RollbackSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.run import run
from tests.connectors.iceberg import plain_history
from tests.support import paimon_tables

Killed = Callable[[Any], JobRequest]


class _KilledError(BaseException):
    """The job ends here."""


class Tables:
    """A table of three snapshots, in one of the formats; ``earliest`` is the id of the first."""

    def __init__(self, folder: Path, format_: str) -> None:
        self.format = format_
        if format_ == "iceberg":
            self.plain = plain_history.made(folder)
            self.name = plain_history.NAME
            self.catalog = CatalogSpec("iceberg", str(folder), self.plain.options)
            self.earliest = plain_history.snapshots(self.plain)[0]
        else:
            self.name, self.earliest = paimon_tables.NAME, 1
            self.catalog = CatalogSpec("paimon", str(folder))
            paimon_tables.create(self.connector, {"id": "bigint"})
            for number in range(3):
                self._append(number)

    @property
    def connector(self) -> Any:
        return open_connector(self.catalog, {})

    def append(self, id_: int) -> None:
        """As another engine."""
        if self.format == "iceberg":
            plain_history.append(self.plain, id_)
        else:
            self._append(id_)

    def ids(self) -> list[int]:
        if self.format == "iceberg":
            return plain_history.ids(self.plain)
        rows = paimon_tables.read(self.connector)
        return sorted(row["id"] for row in rows)

    def _append(self, id_: int) -> None:
        paimon_tables.append(self.connector, [{"id": id_}], f"op-{id_}")
        table = self.connector.metadata.load_table(self.name)
        self.connector.writes.release_guard(table, f"op-{id_}")


@pytest.fixture(params=["iceberg", "paimon"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(tmp_path, request.param)


@pytest.fixture
def killed(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> Killed:
    """Let a job do its work and die before it stores the result; the request of the retry."""

    def dies(log: OperationLog, result: JobResult) -> None:
        assert result.error is None, (log, result.error)
        raise _KilledError

    def first(statement: Any) -> JobRequest:
        request = JobRequest("care-1", tables.name, tables.catalog, statement)
        with monkeypatch.context() as patched:
            patched.setattr(OperationLog, "store", dies)
            with pytest.raises(_KilledError):
                run(request, None)
        return replace(request, origin=Origin(try_number=2))

    return first


def test_a_tag_is_made_once(tables: Tables, killed: Killed) -> None:
    latest = tables.connector.metadata.load_table(tables.name).snapshot_id
    retry = killed(CreateTagSpec("daily", retention="2 d"))
    tables.append(7)

    result = run(retry, None)

    assert result.error is None
    assert result.maintenance is not None
    assert (result.status, result.maintenance.snapshot_id) == ("committed", latest)
    other = replace(retry, operation_id="care-2", origin=Origin())
    refused = run(other, None)
    assert refused.error is not None
    assert refused.error.code == "TAG_EXISTS"
    assert not list(Path(tables.catalog.warehouse).glob("_operations/*.change"))


def test_a_tag_of_others_is_not_taken_for_its_own(tables: Tables, killed: Killed) -> None:
    retry = killed(CreateTagSpec("daily"))
    care = tables.connector.maintenance
    care.delete_tag(tables.name, DeleteTagSpec("daily"), dry_run=False)
    care.create_tag(tables.name, CreateTagSpec("daily", tables.earliest))

    result = run(retry, None)

    assert result.error is not None
    assert result.error.code == "TAG_EXISTS"


def test_a_tag_is_deleted_once(tables: Tables, killed: Killed) -> None:
    care = tables.connector.maintenance
    care.create_tag(tables.name, CreateTagSpec("daily"))

    result = run(killed(DeleteTagSpec("daily")), None)

    assert result.error is None
    assert result.maintenance is not None
    assert (result.status, result.maintenance.tags) == ("committed", 1)


def test_what_others_make_of_a_deleted_name_stays(tables: Tables, killed: Killed) -> None:
    care = tables.connector.maintenance
    care.create_tag(tables.name, CreateTagSpec("daily"))
    retry = killed(DeleteTagSpec("daily"))
    care.create_tag(tables.name, CreateTagSpec("daily", tables.earliest))

    result = run(retry, None)

    assert result.error is None
    assert result.maintenance is not None
    assert (result.status, result.maintenance.tags) == ("committed", 1)
    assert not care.create_tag(tables.name, CreateTagSpec("daily", if_not_exists=True)).changes


def test_a_table_is_rolled_back_once(tables: Tables, killed: Killed) -> None:
    retry = killed(RollbackSpec(tables.earliest, force=True))
    assert tables.ids() == [0]
    tables.append(7)

    result = run(retry, None)

    assert result.maintenance is not None
    assert (result.status, result.maintenance.snapshots) == ("committed", 2)
    assert tables.ids() == [0, 7]


@pytest.mark.parametrize("tables", ["iceberg"], indirect=True)
class TestBranches:
    """Each is done in a first try; the branch has moved on before the second."""

    def test_a_branch_is_made_once(self, tables: Tables, killed: Killed) -> None:
        retry = killed(CreateBranchSpec("audit", tables.earliest))
        plain_history.append(tables.plain, 7, "audit")

        self._is_told(retry, snapshot_id=tables.earliest)

        references = plain_history.references(tables.plain)
        assert references["audit"][1] != tables.earliest

    def test_a_branch_is_deleted_once(self, tables: Tables, killed: Killed) -> None:
        self._branch(tables, "audit", tables.earliest)
        retry = killed(DeleteBranchSpec("audit"))

        self._is_told(retry, tags=1)
        self._branch(tables, "audit", self._head(tables))
        self._is_told(replace(retry, operation_id="care-2", origin=Origin()), tags=1)

    def test_a_branch_goes_forward_once(self, tables: Tables, killed: Killed) -> None:
        self._branch(tables, "audit", self._head(tables))
        plain_history.append(tables.plain, 6, "audit")
        head = plain_history.references(tables.plain)["audit"][1]
        retry = killed(FastForwardSpec("audit"))
        tables.append(7)

        self._is_told(retry, snapshot_id=head)

        assert tables.ids() == [0, 1, 2, 6, 7]

    def test_a_snapshot_is_set_once(self, tables: Tables, killed: Killed) -> None:
        retry = killed(SetCurrentSnapshotSpec(tables.earliest, force=True))
        tables.append(7)

        self._is_told(retry, snapshot_id=tables.earliest, snapshots=2)

        assert tables.ids() == [0, 7]

    def test_a_branch_that_others_set_elsewhere_stays_there(
        self, tables: Tables, killed: Killed
    ) -> None:
        second = plain_history.snapshots(tables.plain)[1]
        retry = killed(SetCurrentSnapshotSpec(second, force=True))
        manage = plain_history.table(tables.plain).manage_snapshots()
        manage.set_current_snapshot(tables.earliest).commit()

        result = run(retry, None)

        assert result.error is not None
        assert result.error.code == "COMMIT_HISTORY_EXPIRED"
        assert tables.ids() == [0]

    @pytest.mark.parametrize("is_on_head", [True, False])
    def test_a_snapshot_is_picked_once(
        self, tables: Tables, killed: Killed, is_on_head: bool
    ) -> None:
        self._branch(tables, "staging", self._head(tables))
        plain_history.append(tables.plain, 6, "staging")
        staged = plain_history.references(tables.plain)["staging"][1]
        if not is_on_head:
            tables.append(5)
        retry = killed(CherryPickSpec(staged))
        picked = self._head(tables)
        tables.append(7)

        self._is_told(retry, snapshot_id=picked)

        assert (picked == staged) == is_on_head
        assert tables.ids() == ([0, 1, 2, 6, 7] if is_on_head else [0, 1, 2, 5, 6, 7])

    @staticmethod
    def _is_told(retry: JobRequest, **report: int) -> None:
        result = run(retry, None)
        assert (result.error, result.status) == (None, "committed")
        assert result.maintenance is not None
        assert {name: getattr(result.maintenance, name) for name in report} == report

    @staticmethod
    def _branch(tables: Tables, name: str, snapshot_id: int) -> None:
        manage = plain_history.table(tables.plain).manage_snapshots()
        manage.create_branch(snapshot_id, name).commit()

    @staticmethod
    def _head(tables: Tables) -> int:
        found: int = plain_history.references(tables.plain)["main"][1]
        return found
