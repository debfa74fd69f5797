"""Files that nobody needs are found, by the driver alone and through Spark, and nothing else is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.fs as pafs
import pytest
from pyspark.sql import SparkSession

from spark_jobs.avro import open_manifest
from spark_jobs.connectors.paimon.format.manifest_entries import named_file
from spark_jobs.connectors.paimon.maintenance.orphan_files import folders_of
from spark_jobs.connectors.paimon.maintenance.table_maintenance import PaimonMaintenance
from spark_jobs.connectors.shared.maintenance import orphans
from spark_jobs.connectors.shared.maintenance.orphans import DriverSearch, SparkSearch
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    MaintenanceReport,
    RemoveOrphanFilesSpec,
    RollbackSpec,
)
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.errors import ErrorCode, InternalError, JobError
from spark_jobs.formats.avro.records import records
from spark_jobs.spi.connector import Connector
from spark_jobs.storage.removal import FileRemover
from tests.connectors.paimon.histories import new_history
from tests.support.paimon_changelogs import with_changelogs
from tests.support.paimon_tables import (
    NAME,
    append,
    begin,
    create,
    inserts,
    overwrite,
    read,
    store,
)
from tests.support.reachable import needed, stored

ROWS = [{"id": number, "k": "x"} for number in range(1, 5)]
OLD = time.time() - 3 * 86_400

Remove = Callable[..., MaintenanceReport]


@pytest.fixture(params=["driver", pytest.param("spark", marks=pytest.mark.slow)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Where the search runs."""
    return request.getfixturevalue("spark") if request.param == "spark" else None


@pytest.fixture
def remove(connector: Connector, session: SparkSession | None) -> Remove:
    """Removes what is older than five seconds from now, when the clock is six seconds ahead.

    ``older_than`` is of a clock that is right.
    """
    maintenance: Any = connector.maintenance

    def remove(older_than: str = "", *, dry_run: bool = False) -> MaintenanceReport:
        ahead = timedelta(seconds=0 if older_than else 6)
        later = PaimonMaintenance(
            maintenance._metadata, maintenance._storage, lambda: datetime.now(UTC) + ahead
        )
        spec = RemoveOrphanFilesSpec(older_than or "1 s")
        return later.remove_orphan_files(NAME, spec, dry_run=dry_run, spark=session)

    return remove


@pytest.fixture
def table(connector: Connector, warehouse: Path) -> Path:
    """Snapshots 1 to 4, a row in each."""
    create(connector, {"id": "int", "k": "string"}, ["k"])
    for number, row in enumerate(ROWS, 1):
        append(connector, [row], f"op-{number}")
        connector.writes.release_guard(connector.metadata.load_table(NAME), f"op-{number}")
    return warehouse / "shop.db/orders"


def files(table: Path) -> set[str]:
    return {str(path.relative_to(table)) for path in table.rglob("*") if path.is_file()}


def test_the_files_of_dropped_snapshots_become_orphans(
    connector: Connector, table: Path, remove: Remove
) -> None:
    assert connector.maintenance is not None
    back = RollbackSpec(snapshot_id=2, force=True)
    connector.maintenance.roll_back(NAME, back, dag_id="", dry_run=False)
    before = files(table)

    preview = remove(dry_run=True)
    assert files(table) == before
    report = remove()

    assert report == preview
    assert report.data_files == 2
    assert set(report.files) == before - files(table)
    assert stored(table) == needed(table)
    assert read(connector) == ROWS[:2]
    assert not remove().changes


def test_each_kind_of_place(connector: Connector, table: Path, remove: Remove) -> None:
    gone = ["k=x/bucket-0/data-a", "k=y/bucket-3/data-b.parquet", "bucket-0/c", "index/index-d"]
    gone += ["manifest/manifest-e", "manifest/manifest-list-f", "statistics/stat-g"]
    gone += ["k=x/deep/bucket-postpone/data-h", "bucket-7/k=x/bucket-0/i"]
    stay = ["notes.txt", "k=x/mine", "k=x/bucket-0/mine/data-a", "mine/a", "manifest/mine/a"]
    stay += ["schema/bucket-0/a", "tag/bucket-0/a", "branch/branch-b/bucket-0/a", "removal/mine"]
    before = files(table)
    for number, name in enumerate((*gone, *stay)):
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).write_text("x" * number)

    report = remove()

    assert list(report.files) == sorted(gone)
    assert (report.data_files, report.index_files, report.manifests) == (5, 1, 3)
    assert report.bytes_removed == sum(range(len(gone)))
    assert files(table) == before | set(stay)


def test_young_files_stay(table: Path, remove: Remove) -> None:
    old, young = (table / f"k=x/bucket-0/data-{name}" for name in ("old", "young"))
    for path in (old, young):
        path.write_text("x")
    os.utime(old, (OLD, OLD))

    report = remove("1 d")

    assert report.data_files == 1
    assert not old.exists()
    assert young.exists()


@pytest.mark.parametrize("limit", ["0 s", "2099-01-01T00:00:00Z"])
def test_a_limit_that_is_not_past_is_refused(table: Path, remove: Remove, limit: str) -> None:
    (table / "k=x/bucket-0/data-being-written").touch()
    before = files(table)

    with pytest.raises(JobError) as raised:
        remove(limit)

    assert raised.value.code is ErrorCode.REQUEST_INVALID
    assert raised.value.message == (
        f"older_than: {limit} is not before now: files that others are writing would go."
    )
    assert raised.value.remedy == "Give more than the longest write takes, such as 1 d."
    assert files(table) == before


def test_a_report_names_the_first_of_many(
    table: Path, remove: Remove, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = sorted(f"k={k}/bucket-0/data-{n}" for k in ("ü", "x", "Z") for n in range(400))
    for name in names:
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).touch()
    monkeypatch.setattr(orphans, "_PART", 500)
    monkeypatch.setattr(orphans, "_NAMES_PER_TASK", 300)

    report = remove()

    assert report.data_files == 1200
    assert list(report.files) == names[:1000]
    assert stored(table) == needed(table)


def test_partitions_of_two_levels(
    connector: Connector, warehouse: Path, remove: Remove, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "_NAMES_PER_TASK", 3)
    create(connector, {"id": "int", "a": "string", "b": "int"}, ["a", "b"])
    values = [{"id": n, "a": a, "b": n} for n, a in enumerate([None, "", "x=y/z", "ü %", "a"])]
    for number, row in enumerate(values):
        append(connector, [row], f"op-{number}")
        connector.writes.release_guard(connector.metadata.load_table(NAME), f"op-{number}")
    table = warehouse / "shop.db/orders"
    for folder in {path.parent for path in table.rglob("*.parquet")}:
        (folder / "data-lost").touch()

    report = remove()

    assert report.data_files == 5
    assert stored(table) == needed(table)
    assert read(connector) == sorted(values, key=repr)


def test_a_table_without_snapshots(connector: Connector, warehouse: Path, remove: Remove) -> None:
    create(connector, {"id": "int"})
    folder = warehouse / "shop.db/orders/bucket-0"
    folder.mkdir()
    assert not remove().changes
    (folder / "data-lost").touch()

    assert remove().files == ("bucket-0/data-lost",)


def test_what_a_tag_and_a_branch_need_stays(
    connector: Connector, table: Path, remove: Remove
) -> None:
    maintenance = connector.maintenance
    assert maintenance is not None
    overwrite(connector, 5)
    maintenance.create_tag(NAME, CreateTagSpec("t", 2))
    maintenance.create_tag(NAME, CreateTagSpec("u", 3))
    connector.metadata.load_table(NAME).native.table.branch_manager().create_branch("b", "u")
    for path in (table / "snapshot").glob("snapshot-[1-4]"):
        path.unlink()  # as an expiry that was killed leaves it
    (table / "tag/tag-u").unlink()

    report = remove()

    assert report.data_files == 1
    assert stored(table) == needed(table)
    assert len(list(table.rglob("*.parquet"))) == 4


def test_a_file_in_a_folder_of_another_spelling_is_no_orphan(table: Path, remove: Remove) -> None:
    (table / "k=x").rename(table / "k=X")

    assert not remove().changes
    assert len(list(table.rglob("*.parquet"))) == 4


def stored_but_not_committed(connector: Connector) -> Callable[[], None]:
    """A row is on its way into the table; what is returned commits it."""
    handle = connector.metadata.load_table(NAME)
    running = begin(connector, handle, "running")
    fragments = store(running, inserts(handle, [{"id": 9, "k": "x"}]))

    def finish() -> None:
        connector.writes.finish_merge(handle, running, fragments, {})
        connector.writes.release_guard(handle, "running")

    return finish


def test_files_of_a_running_operation_stay(
    connector: Connector, table: Path, remove: Remove
) -> None:
    finish = stored_but_not_committed(connector)

    remove()

    finish()
    assert read(connector) == [*ROWS, {"id": 9, "k": "x"}]


def test_what_is_committed_after_the_listing_is_known(
    connector: Connector,
    table: Path,
    remove: Remove,
    session: SparkSession | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finish = stored_but_not_committed(connector)
    (table / "k=x/bucket-0/data-lost").touch()
    search: Any = DriverSearch if session is None else SparkSearch
    list_files = search.list_files

    def late(self: Any, before: int) -> Any:
        listed = list_files(self, before)
        finish()
        return listed

    monkeypatch.setattr(search, "list_files", late)
    report = remove()

    assert report.files == ("k=x/bucket-0/data-lost",)
    assert read(connector) == [*ROWS, {"id": 9, "k": "x"}]


@dataclass
class _Failing:
    """Removes only so many files in all."""

    remover: FileRemover
    left: int

    def remove(self, paths: Collection[str]) -> None:
        self.remover.remove(list(paths)[: self.left])
        self.left -= len(paths)
        if self.left < 0:
            raise InternalError(ErrorCode.STORAGE_UNAVAILABLE, "The storage failed.")

    def remove_in_order(self, paths: Sequence[str]) -> None:
        raise AssertionError


def test_a_removal_that_fails_is_finished_by_the_next_one(
    connector: Connector,
    table: Path,
    session: SparkSession | None,
    remove: Remove,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(20):
        (table / f"k=x/bucket-0/data-{number}").touch()
    monkeypatch.setattr(orphans, "_PART", 5)
    maintenance: Any = connector.maintenance
    failing = replace(maintenance._storage, remover=_Failing(maintenance._storage.remover, 12))
    later = datetime.now(UTC) + timedelta(days=2)

    with pytest.raises(JobError) as raised:
        PaimonMaintenance(maintenance._metadata, failing, lambda: later).remove_orphan_files(
            NAME, RemoveOrphanFilesSpec(), dry_run=False, spark=session
        )

    assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert len(stored(table) - needed(table)) == 8
    assert remove().data_files == 8
    assert stored(table) == needed(table)


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def without_names(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"_FILE_NAME", b"_FILE_NAMF"))


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("manifest/manifest-????????-*", Path.unlink),
        ("manifest/manifest-????????-*", cut_off),
        ("manifest/manifest-????????-*", without_names),
        ("manifest/manifest-list-*", Path.unlink),
        ("manifest/manifest-list-*", cut_off),
        ("snapshot/snapshot-2", cut_off),
    ],
)
def test_an_unreadable_reference_ends_it_before_anything_goes(
    table: Path, remove: Remove, pattern: str, damage: Callable[[Path], None]
) -> None:
    (table / "k=x/bucket-0/data-lost").touch()
    damage(min(table.glob(pattern)))
    before = files(table)

    with pytest.raises(Exception) as raised:  # noqa: PT011 - the engine translates it
        remove()

    assert translated(raised.value).code is ErrorCode.METADATA_UNREADABLE
    assert files(table) == before


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_executors_read_manifests_as_the_driver_does(tmp_path: Path, seed: int) -> None:
    table = new_history(tmp_path, seed).table
    manifests = [path for path in table.glob("manifest/manifest-*") if "list" not in path.name]

    for path in manifests:
        with path.open("rb") as stream:
            expected = [named_file(record) for record in fastavro.reader(stream)]
        assert list(map(named_file, records(open_manifest(path.read_bytes())))) == expected
        assert expected


def test_folders_are_listed_apart(tmp_path: Path) -> None:
    deep = ["a=1/b=1", "a=1/b=2", "a=2/b=1", "a=3/bucket-1"]
    for name in (*deep, "bucket-0", "manifest", "snapshot"):
        (tmp_path / name).mkdir(parents=True)

    def found(levels: int, enough: int) -> list[str]:
        folders = folders_of(pafs.LocalFileSystem(), str(tmp_path), levels, enough)
        assert all(is_deep for _, is_deep in folders)
        return [each.removeprefix(f"{tmp_path}/") for each, _ in folders]

    assert found(2, 1) == ["a=1", "a=2", "a=3", "bucket-0", "manifest"]
    assert found(1, 100) == found(2, 6) == [*deep, "bucket-0", "manifest"]


def test_changelogs_of_snapshots_are_no_orphans(
    connector: Connector, warehouse: Path, remove: Remove
) -> None:
    table = with_changelogs(connector, warehouse, 3)
    assert not remove().changes
    assert connector.maintenance is not None
    back = RollbackSpec(snapshot_id=2, force=True)
    connector.maintenance.roll_back(NAME, back, dag_id="", dry_run=False)

    report = remove()

    assert (report.data_files, report.manifests) == (2, 5)
    assert len(list((table / "bucket-0").glob("changelog-*"))) == 2
    assert stored(table) == needed(table)
