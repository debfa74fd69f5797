"""Expiry: what goes and what stays, and nothing of others is lost by it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, Kept
from spark_jobs.contract.operation_files import base_path
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.plain_history import (
    SCHEMA,
    append,
    care,
    expire,
    ids,
    made,
    needed,
    references,
    refusal,
    replace_all,
    root,
    snapshots,
    stored,
    table,
)
from tests.connectors.iceberg.plain_tables import PlainCatalog

NOW = "0 s"
HOUR = 3_600_000


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """Five snapshots, which append the ids 0 to 4."""
    return made(tmp_path, 5)


def test_old_snapshots_go_with_what_only_they_need(
    catalog: PlainCatalog, connector: Connector
) -> None:
    replace_all(catalog)
    before = stored(catalog)
    newest = snapshots(catalog)[-1]

    report = expire(connector, older_than=NOW)

    assert snapshots(catalog) == [newest]
    assert ids(catalog) == [10]
    assert stored(catalog) == needed(catalog)
    gone = before - stored(catalog)
    assert report.snapshots == 6  # an overwrite of pyiceberg is two
    assert report.data_files == sum(each.endswith(".parquet") for each in gone) == 5
    assert report.manifests == sum(each.endswith(".avro") for each in gone)
    assert (report.earliest_snapshot_id, report.latest_snapshot_id) == (newest, newest)
    assert report.bytes_removed > 0


def test_a_dry_run_says_the_same_and_removes_nothing(
    catalog: PlainCatalog, connector: Connector
) -> None:
    replace_all(catalog)
    before, known = stored(catalog), snapshots(catalog)

    told = expire(connector, dry_run=True, older_than=NOW)

    assert (stored(catalog), snapshots(catalog)) == (before, known)
    assert told == expire(connector, older_than=NOW)


def test_what_older_snapshots_share_with_newer_ones_stays(
    catalog: PlainCatalog, connector: Connector
) -> None:
    report = expire(connector, older_than=NOW, retain_min=2)

    assert len(snapshots(catalog)) == 2
    assert report.data_files == 0
    assert ids(catalog) == [0, 1, 2, 3, 4]
    assert stored(catalog) == needed(catalog)


@pytest.mark.parametrize(
    ("hours", "limits", "left"),
    [
        (0, {}, 5),
        (24 * 5 - 1, {}, 5),
        (24 * 5 + 1, {}, 1),
        (24 * 5 + 1, {"retain_min": 3}, 3),
        (3, {"older_than": "2 h"}, 1),
        (3, {"older_than": "4 h"}, 5),
        # Nothing that is younger than an hour goes, unless an age says so.
        (0, {"retain_max": 2}, 5),
        (0, {"retain_max": 2, "older_than": NOW}, 1),
        (2, {"retain_max": 2}, 2),
        (2, {"retain_max": 2, "older_than": "5 d"}, 2),
    ],
)
def test_limits(
    catalog: PlainCatalog, connector: Connector, hours: float, limits: dict[str, Any], left: int
) -> None:
    newest = snapshots(catalog)[-left:]
    report = expire(connector, hours, **limits)
    assert snapshots(catalog) == newest
    assert report.snapshots == 5 - left
    assert ids(catalog) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("properties", "hours", "left"),
    [
        ({"history.expire.max-snapshot-age-ms": "60000"}, 0.5, 1),
        ({"history.expire.max-snapshot-age-ms": "60000"}, 0, 5),
        ({"history.expire.min-snapshots-to-keep": "4"}, 1000, 4),
    ],
)
def test_limits_of_the_table(
    tmp_path: Path, properties: dict[str, str], hours: float, left: int
) -> None:
    catalog = made(tmp_path, 5, **properties)
    expire(catalog.open(), hours)
    assert len(snapshots(catalog)) == left


def test_max_deletes_takes_the_oldest(catalog: PlainCatalog, connector: Connector) -> None:
    known = snapshots(catalog)

    report = expire(connector, older_than=NOW, max_deletes=3)

    assert snapshots(catalog) == known[3:]
    assert (report.snapshots, report.snapshots_left) == (3, 1)
    assert expire(connector, older_than=NOW).snapshots_left == 0
    assert snapshots(catalog) == known[4:]
    assert stored(catalog) == needed(catalog)


def test_tags_and_branches_keep_what_they_name(catalog: PlainCatalog, connector: Connector) -> None:
    known = snapshots(catalog)
    manage = table(catalog).manage_snapshots()
    manage.create_tag(known[1], "first").create_branch(known[2], "audit").commit()
    append(catalog, 9, "audit")
    audit = table(catalog).metadata.refs["audit"].snapshot_id
    # Pyiceberg's append has no retention for the branch.
    table(catalog).manage_snapshots().create_branch(audit, "audit", None, None, 2).commit()
    replace_all(catalog)
    newest = snapshots(catalog)[-1]

    report = expire(connector, older_than=NOW)

    assert set(snapshots(catalog)) == {known[1], known[2], audit, newest}
    assert references(catalog).keys() == {"main", "first", "audit"}
    assert ids(catalog, known[1]) == [0, 1]
    assert ids(catalog, audit) == [0, 1, 2, 9]
    assert stored(catalog) == needed(catalog)
    assert report.kept == (Kept("branch audit", snapshots=2), Kept("tag first", snapshots=1))


def test_tags_and_branches_whose_age_is_over_go(
    catalog: PlainCatalog, connector: Connector
) -> None:
    known = snapshots(catalog)
    manage = table(catalog).manage_snapshots()
    manage.create_tag(known[1], "short", HOUR).create_tag(known[2], "long", 9 * HOUR)
    manage.create_branch(known[0], "old", HOUR).commit()

    report = expire(connector, 2, older_than="1 h")

    assert references(catalog).keys() == {"main", "long"}
    assert snapshots(catalog) == [known[2], known[4]]
    assert (report.tags, report.snapshots) == (2, 3)
    assert stored(catalog) == needed(catalog)


def test_snapshots_without_a_branch_go_by_age_alone(
    catalog: PlainCatalog, connector: Connector
) -> None:
    known = snapshots(catalog)
    table(catalog).manage_snapshots().set_current_snapshot(known[2]).commit()

    expire(connector, 3, older_than="4 h", retain_max=1)
    assert snapshots(catalog) == [known[2], *known[3:]]
    expire(connector, 3, older_than="2 h")

    assert snapshots(catalog) == [known[2]]
    assert stored(catalog) == needed(catalog)


def test_statistics_go_with_their_snapshots(catalog: PlainCatalog, connector: Connector) -> None:
    known, paths = snapshots(catalog), []
    for number, each in enumerate((known[0], known[4])):
        for kind, set_statistics in (("s", _statistics), ("p", _partition_statistics)):
            path = Path(root(catalog), "metadata", f"{kind}{number}.puffin")
            path.write_bytes(b"0" * 10)
            set_statistics(catalog, each, f"file://{path}")
            paths.append(str(path))

    expire(connector, older_than=NOW)

    now = table(catalog).metadata
    assert [each.snapshot_id for each in now.statistics] == [known[4]]
    assert [each.snapshot_id for each in now.partition_statistics] == [known[4]]
    assert [Path(each).exists() for each in paths] == [False, False, True, True]
    assert stored(catalog) == needed(catalog)


def _root(catalog: PlainCatalog) -> str:
    return str(table(catalog).location().removeprefix("file://"))


def _statistics(catalog: PlainCatalog, snapshot_id: int, location: str) -> None:
    from pyiceberg.table.statistics import StatisticsFile

    file = StatisticsFile(
        snapshot_id=snapshot_id,
        statistics_path=location,
        file_size_in_bytes=10,
        file_footer_size_in_bytes=1,
        blob_metadata=[],
    )
    with table(catalog).update_statistics() as update:
        update.set_statistics(file)


def _partition_statistics(catalog: PlainCatalog, snapshot_id: int, location: str) -> None:
    from pyiceberg.table.statistics import PartitionStatisticsFile
    from pyiceberg.table.update import SetPartitionStatisticsUpdate

    file = PartitionStatisticsFile(
        snapshot_id=snapshot_id, statistics_path=location, file_size_in_bytes=10
    )
    update = SetPartitionStatisticsUpdate(partition_statistics=file)
    catalog.library().commit_table(table(catalog), (), (update,))


def test_what_running_statements_build_on_stays(
    tmp_path: Path, catalog: PlainCatalog, connector: Connector
) -> None:
    known = snapshots(catalog)
    _note(tmp_path, catalog, "running", known[2])
    _note(tmp_path, catalog, "other-table", known[0], table="another")

    report = expire(connector, older_than=NOW)

    assert snapshots(catalog) == known[2:]
    assert report.kept == (Kept("operation running", snapshots=2),)
    (tmp_path / base_path("running")).unlink()
    assert expire(connector, older_than=NOW).snapshots == 2


def test_an_abandoned_statement_keeps_nothing(
    tmp_path: Path, catalog: PlainCatalog, connector: Connector
) -> None:
    _note(tmp_path, catalog, "killed", snapshots(catalog)[0])
    assert expire(connector, 24 * 6, older_than=NOW).snapshots == 0
    assert expire(connector, 24 * 8, older_than=NOW).snapshots == 4


def test_a_damaged_note_of_a_statement_lets_nothing_go(
    tmp_path: Path, catalog: PlainCatalog, connector: Connector
) -> None:
    _note(tmp_path, catalog, "running", snapshots(catalog)[0])
    (tmp_path / base_path("running")).write_text("{")
    before = stored(catalog)
    assert refusal(lambda: expire(connector, older_than=NOW))[0] is ErrorCode.METADATA_UNREADABLE
    assert stored(catalog) == before


def _note(
    workspace: Path, catalog: PlainCatalog, operation: str, snapshot_id: int, table: str = ""
) -> None:
    from tests.connectors.iceberg import plain_history

    uuid = table or str(plain_history.table(catalog).metadata.table_uuid)
    path = workspace / base_path(operation)
    path.parent.mkdir(exist_ok=True)
    document = {"table": uuid, "snapshot_id": snapshot_id, "sequence_number": 1}
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("properties", "spec", "code", "text"),
    [
        ({"gc.enabled": "false"}, {}, ErrorCode.NOT_SUPPORTED, "gc.enabled = false"),
        (
            {"history.expire.max-snapshot-age-ms": "5 d"},
            {},
            ErrorCode.NOT_SUPPORTED,
            "max-snapshot-age-ms = '5 d'",
        ),
        (
            {"history.expire.min-snapshots-to-keep": str(2**63)},
            {},
            ErrorCode.NOT_SUPPORTED,
            "is not a whole number",
        ),
        (
            {"history.expire.min-snapshots-to-keep": "0"},
            {},
            ErrorCode.NOT_SUPPORTED,
            "min-snapshots-to-keep = '0'",
        ),
        (
            {"history.expire.min-snapshots-to-keep": "4"},
            {"retain_max": 3},
            ErrorCode.REQUEST_INVALID,
            "retain_max: 3 is less than the table's history.expire.min-snapshots-to-keep, 4",
        ),
    ],
)
def test_refusals(
    tmp_path: Path, properties: dict[str, str], spec: dict[str, Any], code: ErrorCode, text: str
) -> None:
    catalog = made(tmp_path, 3, **properties)
    before = stored(catalog)
    for dry_run in (True, False):
        told = refusal(lambda dry=dry_run: expire(catalog.open(), 1000, dry_run=dry, **spec))
        assert told[0] is code
        assert text in told[1]
    assert (stored(catalog), len(snapshots(catalog))) == (before, 3)


def test_a_branch_alone_does_not_expire(catalog: PlainCatalog, connector: Connector) -> None:
    table(catalog).manage_snapshots().create_branch(snapshots(catalog)[2], "b").commit()
    name, spec = TableName("db", "t$branch_b"), ExpireSnapshotsSpec()
    code, text = refusal(lambda: care(connector).expire_snapshots(name, spec, dry_run=False))
    assert code is ErrorCode.NOT_SUPPORTED
    assert "Give the table, db.t;" in text


@pytest.mark.parametrize("what", ["list", "manifest"])
def test_where_metadata_in_use_cannot_be_read_nothing_goes(
    catalog: PlainCatalog, connector: Connector, what: str
) -> None:
    replace_all(catalog)
    newest = table(catalog).current_snapshot()
    damaged = newest.manifest_list
    if what == "manifest":
        damaged = newest.manifests(table(catalog).io)[0].manifest_path
    Path(damaged.removeprefix("file://")).write_bytes(b"damaged")
    before, known = stored(catalog), snapshots(catalog)

    code, _ = refusal(lambda: expire(connector, older_than=NOW))

    assert code is ErrorCode.METADATA_UNREADABLE
    assert (stored(catalog), snapshots(catalog)) == (before, known)


def test_what_an_interrupted_engine_left_half_does_not_keep_the_rest(
    catalog: PlainCatalog, connector: Connector
) -> None:
    replace_all(catalog)
    for each in table(catalog).snapshots()[:2]:
        Path(each.manifest_list.removeprefix("file://")).unlink()

    expire(connector, older_than=NOW)

    assert len(snapshots(catalog)) == 1
    assert ids(catalog) == [10]


def test_files_elsewhere_stay(tmp_path: Path, catalog: PlainCatalog, connector: Connector) -> None:
    import pyarrow.parquet as pq

    elsewhere = tmp_path / "elsewhere.parquet"
    pq.write_table(pa.table({"id": [77]}, schema=SCHEMA), elsewhere)
    table(catalog).add_files([f"file://{elsewhere}"])
    replace_all(catalog)

    report = expire(connector, older_than=NOW)

    assert elsewhere.exists()
    assert report.data_files == 5
    assert stored(catalog) == needed(catalog)
    (kept,) = report.kept
    assert (kept.files, "outside" in kept.by) == (1, True)


def test_the_time_of_the_store_decides(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert expire(connector, older_than="1 h").snapshots == 0
    old = datetime.now(UTC) - timedelta(days=1)
    assert expire(connector, older_than=old.isoformat()).snapshots == 0
