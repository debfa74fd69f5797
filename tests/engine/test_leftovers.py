"""What killed jobs left in the warehouse goes by its age; what a running job needs stays."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import MaintenanceReport, RemoveOrphanFilesSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest
from spark_jobs.engine.runtime.leftovers import leftovers_of
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.run import run
from spark_jobs.spi.storage import WarehouseStorage
from tests.support.paimon_tables import NAME, append, create

DAY = 86_400
SCRATCH = f"_operations/op-1-{'a' * 32}"
OTHER = f"_operations/op-2-{'b' * 32}"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    connector = open_connector(CatalogSpec("paimon", str(tmp_path)), {})
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}], "op-0")
    return tmp_path


def killed(warehouse: Path, folder: str, days: float) -> Path:
    """What a job leaves that is killed when it has read its source: a lease and rows."""
    path = warehouse / folder
    (path / "source-1").mkdir(parents=True)
    (path / "lease").touch()
    (path / "source-1/0.parquet").write_text("a row of somebody")
    stored(path, days)
    return path


def stored(path: Path, days: float) -> None:
    """Let ``path`` and all that is in it be so old."""
    moment = time.time() - days * DAY
    for each in (*path.rglob("*"), path):
        os.utime(each, (moment, moment))


def remove(warehouse: Path, older_than: str = "1 d", *, dry_run: bool = False) -> MaintenanceReport:
    catalog = CatalogSpec("paimon", str(warehouse))
    statement = RemoveOrphanFilesSpec(older_than)
    result = run(JobRequest(str(uuid.uuid4()), NAME, catalog, statement, dry_run=dry_run), None)
    assert result.error is None
    assert result.maintenance is not None
    return result.maintenance


@pytest.mark.parametrize("folder", [SCRATCH, "_dry_run-op-1"])
def test_copies_of_sources_go_with_orphan_files(warehouse: Path, folder: str) -> None:
    left = killed(warehouse, folder, days=8)

    preview = remove(warehouse, dry_run=True)
    assert left.exists()
    report = remove(warehouse)

    assert not left.exists()
    assert report == preview
    assert (report.leftovers, report.bytes_removed) == (1, len("a row of somebody"))
    assert report.changes
    assert not remove(warehouse).changes


@pytest.mark.parametrize("older_than", ["1 s", "1 d", "7 d"])
def test_what_may_be_of_a_running_job_stays(warehouse: Path, older_than: str) -> None:
    """The rows are old, but another file was stored in the last seven days."""
    running = killed(warehouse, SCRATCH, days=8)
    (running / "source-2").mkdir()
    (running / "source-2/0.parquet").touch()
    stored(running / "source-2", days=6)
    begun = killed(warehouse, OTHER, days=6)

    assert remove(warehouse, older_than).leftovers == 0
    assert (running / "source-1/0.parquet").exists()
    assert (begun / "lease").exists()


def test_a_later_limit_holds_for_them_too(warehouse: Path) -> None:
    left = killed(warehouse, SCRATCH, days=8)

    assert remove(warehouse, "9 d").leftovers == 0
    assert left.exists()


def test_an_empty_folder_goes(warehouse: Path) -> None:
    left = warehouse / SCRATCH
    left.mkdir(parents=True)
    stored(left, days=8)

    assert remove(warehouse).leftovers == 1
    assert not left.exists()


def test_what_is_no_temporary_folder_stays(warehouse: Path) -> None:
    (warehouse / "_operations/notes").mkdir(parents=True)
    (warehouse / "_operations/op-1.json").write_text("{}")
    (warehouse / "mine").mkdir()
    stored(warehouse / "_operations", days=400)
    stored(warehouse / "mine", days=400)

    assert remove(warehouse).leftovers == 0
    assert (warehouse / "_operations/notes").exists()
    assert (warehouse / "_operations/op-1.json").exists()
    assert (warehouse / "mine").exists()


def test_a_job_that_lives_after_all_loses_its_lease_first(warehouse: Path) -> None:
    storage = WarehouseStorage(pafs.LocalFileSystem(), str(warehouse), f"file://{warehouse}")
    killed(warehouse, SCRATCH, days=8)

    leftovers_of(storage, "1 d").remove()

    assert not OperationLog(storage).lease(SCRATCH).is_held()


@pytest.mark.parametrize(
    "name",
    ["op-9.json", "op-9.refused.json", "op-9.tries", f".op-9.json.{'c' * 32}.tmp"],
)
def test_results_are_kept_for_thirty_days(warehouse: Path, name: str) -> None:
    log = OperationLog(open_connector(CatalogSpec("paimon", str(warehouse)), {}).storage)
    folder = warehouse / "_operations"
    folder.mkdir(exist_ok=True)
    old, kept, mine = (
        folder / name,
        folder / name.replace("op-9", "op-8"),
        folder / "conditional-put",
    )
    for path, days in ((old, 31), (kept, 29), (mine, 400)):
        path.write_text("{}")
        stored(path, days)

    log.clear_leftovers("op-1", 2)

    assert not old.exists()
    assert kept.exists()
    assert mine.exists()


def test_a_run_removes_a_bounded_number_of_results(warehouse: Path) -> None:
    log = OperationLog(open_connector(CatalogSpec("paimon", str(warehouse)), {}).storage)
    folder = warehouse / "_operations"
    folder.mkdir(exist_ok=True)
    for number in range(1_050):
        (folder / f"op-{number}.json").write_text("{}")
    stored(folder, days=31)

    log.clear_leftovers("op-2000", 2)
    assert len(list(folder.iterdir())) == 50
    log.clear_leftovers("op-2000", 2)
    assert not list(folder.iterdir())


def test_now_and_then_a_first_try_removes_outdated_results(warehouse: Path) -> None:
    log = OperationLog(open_connector(CatalogSpec("paimon", str(warehouse)), {}).storage)
    folder = warehouse / "_operations"
    folder.mkdir(exist_ok=True)
    (folder / "op-1.json").write_text("{}")
    stored(folder, days=31)

    for number in range(1_000):
        log.clear_leftovers(f"new-{number}", 1)

    assert not (folder / "op-1.json").exists()
