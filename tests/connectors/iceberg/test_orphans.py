"""Orphan files: those that nothing needs go, by the driver alone and through Spark."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from spark_jobs.connectors.shared.maintenance.orphans import DriverSearch, SparkSearch
from spark_jobs.contract.maintenance import MaintenanceReport, RemoveOrphanFilesSpec
from spark_jobs.contract.operation_files import base_path
from spark_jobs.contract.request import TableName
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.errors import CommitError, ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.plain_history import (
    NAME,
    SCHEMA,
    append,
    care,
    expire,
    ids,
    made,
    refusal,
    root,
    snapshots,
    stored,
    table,
)
from tests.connectors.iceberg.plain_tables import PlainCatalog

DAY = 86_400
LOST = ("data/lost.parquet", "data/p=1/lost.parquet", "metadata/lost-m0.avro", "lost")
HIDDEN = ("data/_lost.parquet", "data/.lost/a.parquet", "_lost/a.parquet")


@pytest.fixture(params=["driver", pytest.param("spark", marks=pytest.mark.slow)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Where the search runs."""
    return request.getfixturevalue("spark") if request.param == "spark" else None


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """Three snapshots of three days ago, which append the ids 0, 1 and 2."""
    catalog = made(tmp_path)
    aged(catalog)
    return catalog


def aged(catalog: PlainCatalog, days: float = 3) -> None:
    """All files of the table are so old."""
    for each in root(catalog).rglob("*"):
        os.utime(each, (time.time() - days * DAY,) * 2)


def lose(catalog: PlainCatalog, *places: str, days: float = 3) -> None:
    """Leave files in the table's folder that nothing needs."""
    for each in places:
        path = root(catalog) / each
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"lost")
        os.utime(path, (time.time() - days * DAY,) * 2)


def remove(
    connector: Connector,
    session: SparkSession | None,
    *,
    dry_run: bool = False,
    older_than: str = "1 d",
    require_wanted: Callable[[], None] = lambda: None,
) -> MaintenanceReport:
    return care(connector).remove_orphan_files(
        NAME,
        RemoveOrphanFilesSpec(older_than),
        dry_run=dry_run,
        spark=session,
        require_wanted=require_wanted,
    )


def refused(connector: Connector, session: SparkSession | None) -> tuple[ErrorCode, str]:
    """The error, as a job translates those of tasks."""
    with pytest.raises((JobError, PythonException)) as caught:
        remove(connector, session)
    error = translated(caught.value)
    return error.code, str(error)


def test_what_nothing_needs_goes(
    catalog: PlainCatalog, connector: Connector, session: SparkSession | None
) -> None:
    before = stored(catalog)
    lose(catalog, *LOST, *HIDDEN)
    lose(catalog, "data/young.parquet", days=0.5)

    preview = remove(connector, session, dry_run=True)
    assert stored(catalog) > before
    report = remove(connector, session)

    assert report == preview
    assert report.files == tuple(sorted(LOST))
    assert (report.data_files, report.manifests, report.bytes_removed) == (3, 1, 16)
    assert report.latest_snapshot_id == snapshots(catalog)[-1]
    left = {str(root(catalog) / each) for each in (*HIDDEN, "data/young.parquet")}
    assert stored(catalog) == before | left
    assert ids(catalog) == [0, 1, 2]


def test_everything_that_metadata_names_stays(
    catalog: PlainCatalog, connector: Connector, session: SparkSession | None
) -> None:
    """Older snapshots, branches, what is on no branch, and metadata files in the log."""
    first, second, newest = snapshots(catalog)
    table(catalog).manage_snapshots().create_branch(first, "audit").commit()
    append(catalog, 9, "audit")
    table(catalog).manage_snapshots().set_current_snapshot(second).commit()
    aged(catalog)
    before = set(root(catalog).rglob("*"))

    assert not remove(connector, session).changes

    assert set(root(catalog).rglob("*")) == before
    assert ids(catalog, newest) == [0, 1, 2]


def test_metadata_files_that_are_no_longer_logged_go(
    tmp_path: Path, session: SparkSession | None
) -> None:
    catalog = made(tmp_path, 5, **{"write.metadata.previous-versions-max": "2"})
    aged(catalog)

    report = remove(catalog.open(), session)

    assert len(report.files) == 3
    assert all(each.endswith(".metadata.json") for each in report.files)
    assert ids(catalog) == [0, 1, 2, 3, 4]


def test_files_of_a_running_operation_stay(
    tmp_path: Path, catalog: PlainCatalog, connector: Connector, session: SparkSession | None
) -> None:
    path = tmp_path / base_path("running")
    path.parent.mkdir(exist_ok=True)
    uuid = str(table(catalog).metadata.table_uuid)
    path.write_text(json.dumps({"table": uuid, "snapshot_id": None, "sequence_number": 0}))
    os.utime(path, (time.time() - 4 * DAY,) * 2)
    lose(catalog, *LOST)

    assert not remove(connector, session).changes
    lose(catalog, "data/older.parquet", days=5)
    assert remove(connector, session).files == ("data/older.parquet",)


def test_what_is_committed_after_the_listing_is_known(
    catalog: PlainCatalog,
    connector: Connector,
    session: SparkSession | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import pyarrow.parquet as pq

    written = root(catalog) / "data" / "written.parquet"
    pq.write_table(pa.table({"id": [9]}, schema=SCHEMA), written)
    aged(catalog)
    lose(catalog, "lost")
    search: Any = DriverSearch if session is None else SparkSearch
    list_files = search.list_files

    def late(self: Any, before: int) -> Any:
        listed = list_files(self, before)
        table(catalog).add_files([f"file://{written}"])
        return listed

    monkeypatch.setattr(search, "list_files", late)

    assert remove(connector, session).files == ("lost",)
    assert ids(catalog) == [0, 1, 2, 9]


def test_another_table_inside_is_refused(
    catalog: PlainCatalog, connector: Connector, session: SparkSession | None
) -> None:
    lose(catalog, *LOST)
    library = catalog.library()
    inside = f"file://{root(catalog)}/data/inside"
    library.create_table(("db", "inside"), SCHEMA, location=inside)
    before = stored(catalog)

    code, text = refused(connector, session)

    assert code is ErrorCode.NOT_SUPPORTED
    assert "db.inside has its files at" in text
    # As well where the catalog does not know it any longer.
    library.drop_table(("db", "inside"))
    code, text = refused(connector, session)
    assert code is ErrorCode.NOT_SUPPORTED
    assert "the metadata of another table" in text
    assert stored(catalog) == before


def test_a_name_in_another_case_is_the_same_table(
    catalog: PlainCatalog, connector: Connector
) -> None:
    lose(catalog, *LOST)
    name, spec = TableName("db", "T"), RemoveOrphanFilesSpec()
    report = care(connector).remove_orphan_files(name, spec, dry_run=False)
    assert report.files == tuple(sorted(LOST))


def test_a_table_of_the_same_folder_is_refused(catalog: PlainCatalog, connector: Connector) -> None:
    catalog.library().register_table(("db", "same"), table(catalog).metadata_location)
    code, text = refusal(lambda: remove(connector, None))
    assert code is ErrorCode.NOT_SUPPORTED
    assert "db.same" in text


def test_a_shared_folder_for_data_is_refused(tmp_path: Path) -> None:
    data = f"file://{tmp_path}/shared"
    catalog = made(tmp_path, 1, **{"write.data.path": data})
    catalog.library().create_table(("db", "u"), SCHEMA, properties={"write.data.path": data})
    code, text = refusal(lambda: remove(catalog.open(), None))
    assert code is ErrorCode.NOT_SUPPORTED
    assert "db.u has its files at" in text


def test_folders_elsewhere_are_searched_too(tmp_path: Path, session: SparkSession | None) -> None:
    data = tmp_path / "elsewhere"
    catalog = made(tmp_path, 2, **{"write.data.path": f"file://{data}"})
    lost = data / "x" / "lost.parquet"
    lost.parent.mkdir()
    lost.write_bytes(b"lost")
    for each in data.rglob("*"):
        os.utime(each, (time.time() - 3 * DAY,) * 2)

    report = remove(catalog.open(), session)

    assert report.files == (str(lost),)
    assert not lost.exists()
    assert ids(catalog) == [0, 1]


def test_refusals(tmp_path: Path, catalog: PlainCatalog, connector: Connector) -> None:
    lose(catalog, *LOST)
    before = stored(catalog)
    code, text = refusal(lambda: remove(connector, None, older_than="0 s"))
    assert (code, "is not before now" in text) == (ErrorCode.REQUEST_INVALID, True)
    with table(catalog).transaction() as change:
        change.set_properties({"gc.enabled": "false"})
    code, text = refusal(lambda: remove(connector, None))
    assert (code, "gc.enabled = false" in text) == (ErrorCode.NOT_SUPPORTED, True)
    assert stored(catalog) == before


@pytest.mark.parametrize("damaged", ["list", "manifest"])
def test_where_metadata_in_use_cannot_be_read_nothing_goes(
    catalog: PlainCatalog, connector: Connector, session: SparkSession | None, damaged: str
) -> None:
    lose(catalog, *LOST)
    oldest = table(catalog).snapshots()[0]
    place = oldest.manifest_list
    if damaged == "manifest":
        place = oldest.manifests(table(catalog).io)[0].manifest_path
    Path(place.removeprefix("file://")).write_bytes(b"damaged")
    before = stored(catalog)

    code, _ = refused(connector, session)

    assert code is ErrorCode.METADATA_UNREADABLE
    assert stored(catalog) == before


def test_an_ended_task_removes_nothing(catalog: PlainCatalog, connector: Connector) -> None:
    lose(catalog, *LOST)
    before = stored(catalog)

    def ended() -> None:
        raise CommitError(ErrorCode.RUN_GIVEN_UP, "the task has ended.", "Nothing.")

    code, _ = refusal(lambda: remove(connector, None, require_wanted=ended))
    assert code is ErrorCode.RUN_GIVEN_UP
    assert stored(catalog) == before


def test_links_are_left_alone(tmp_path: Path, catalog: PlainCatalog, connector: Connector) -> None:
    others = tmp_path / "others"
    others.mkdir()
    (others / "precious.parquet").write_bytes(b"precious")
    os.utime(others / "precious.parquet", (0, 0))
    (root(catalog) / "data" / "link").symlink_to(others)
    assert not remove(connector, None).changes
    assert (others / "precious.parquet").exists()


def test_a_table_of_another_catalog_in_the_data_folder_is_refused(
    tmp_path: Path, session: SparkSession | None
) -> None:
    other = PlainCatalog(tmp_path / "other")
    other.folder.mkdir()
    other.create(SCHEMA, {}, pa.table({"id": [1]}, schema=SCHEMA))
    catalog = made(tmp_path, 1, **{"write.data.path": table(other).location()})
    aged(catalog)
    aged(other)

    code, text = refused(catalog.open(), session)

    assert (code, "the metadata of another table" in text) == (ErrorCode.NOT_SUPPORTED, True)
    assert ids(other) == [1]


def test_compressed_metadata_of_another_table_is_seen(
    catalog: PlainCatalog, connector: Connector, session: SparkSession | None
) -> None:
    """Iceberg's older name for it."""
    lose(catalog, "other/metadata/v1.metadata.json.gz", "other/data/a.parquet")
    code, text = refused(connector, session)
    assert (code, "the metadata of another table" in text) == (ErrorCode.NOT_SUPPORTED, True)


@pytest.mark.parametrize("path", ["/", "file:///", "file:/./"])
def test_the_root_of_the_storage_is_no_folder_of_a_table(tmp_path: Path, path: str) -> None:
    connector = made(tmp_path, 0, **{"write.data.path": path}).open()
    for work in (lambda: expire(connector, older_than="0 s"), lambda: remove(connector, None)):
        code, text = refusal(work)
        assert (code, "the root of the storage" in text) == (ErrorCode.NOT_SUPPORTED, True)
