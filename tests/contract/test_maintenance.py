"""Limits, names and durations of the statements that take care of a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_jobs.contract.durations import (
    duration_text,
    parse_duration,
    parse_limit,
    parse_option,
)
from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    CreateTagSpec,
    DeleteBranchSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    FastForwardSpec,
    RemoveOrphanFilesSpec,
    RollbackSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
from spark_jobs.errors import ErrorCode, RequestError

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_an_expiry_that_cleans_nothing_keeps_its_digest() -> None:
    table, catalog = TableName("a", "b"), CatalogSpec("iceberg", "/lake")
    plain, cleaning = (
        JobRequest("op", table, catalog, ExpireSnapshotsSpec(clean_expired_metadata=each)).digest()
        for each in (False, True)
    )
    assert plain == "e2fb5eacdfa6920f8ade497a8a9a886a5536fc3de80db57e070ef395110b056f"
    assert cleaning != plain


@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        (ExpireSnapshotsSpec, {"retain_max": -1}, "retain_max: -1 is not positive"),
        (ExpireSnapshotsSpec, {"retain_min": 0}, "retain_min: 0 is not positive"),
        (ExpireSnapshotsSpec, {"max_deletes": 0}, "max_deletes: 0 is not positive"),
        (
            ExpireSnapshotsSpec,
            {"retain_min": 5, "retain_max": 3},
            "retain_min: 5 is more than retain_max, 3",
        ),
        (ExpireSnapshotsSpec, {"older_than": "-1 d"}, "older_than: '-1 d' is neither a duration"),
        (ExpireSnapshotsSpec, {"older_than": "1 week"}, "older_than: '1 week' is not a duration"),
        (
            ExpireSnapshotsSpec,
            {"older_than": "2026-01-31"},
            "older_than: '2026-01-31' is a timestamp without an offset",
        ),
        (
            ExpireSnapshotsSpec,
            {"older_than": "7"},
            "older_than: '7' has no unit: write 7 d, h, min, s or ms",
        ),
        (RemoveOrphanFilesSpec, {"older_than": " 0 "}, "older_than: ' 0 ' has no unit: write 0 d"),
        (CreateTagSpec, {"tag": "t", "retention": "30"}, "retention: '30' has no unit"),
        (RemoveOrphanFilesSpec, {"older_than": ""}, "older_than: '' is neither a duration"),
        (CreateTagSpec, {"tag": "a/b"}, "tag: 'a/b' is not the name of a tag"),
        (CreateTagSpec, {"tag": " "}, "tag: ' ' is not the name of a tag"),
        (CreateTagSpec, {"tag": "7"}, "tag: '7' is a number"),
        (CreateTagSpec, {"tag": "t", "snapshot_id": 0}, "snapshot_id: 0 is not the id"),
        (CreateTagSpec, {"tag": "t", "retention": "soon"}, "retention: 'soon' is not a duration"),
        (DeleteTagSpec, {"tag": "../x"}, "tag: '../x' is not the name of a tag"),
        (RollbackSpec, {}, "snapshot_id: give either a snapshot or a tag"),
        (RollbackSpec, {"snapshot_id": 1, "tag": "t"}, "snapshot_id: give either"),
        (CreateBranchSpec, {"branch": "main"}, "branch: main is the branch that every table has"),
        (CreateBranchSpec, {"branch": "7"}, "branch: '7' is a number"),
        (CreateBranchSpec, {"branch": "a/b"}, "branch: 'a/b' is not the name of a branch"),
        (CreateBranchSpec, {"branch": "b", "snapshot_id": 1, "tag": "t"}, "tag: give a snapshot"),
        (CreateBranchSpec, {"branch": "b", "retention": "0 d"}, "retention: '0 d' is no time"),
        (
            CreateBranchSpec,
            {"branch": "b", "max_snapshot_age": "5"},
            "max_snapshot_age: '5' has no unit",
        ),
        (
            CreateBranchSpec,
            {"branch": "b", "min_snapshots_to_keep": 0},
            "min_snapshots_to_keep: 0 is not positive",
        ),
        (DeleteBranchSpec, {"branch": "main"}, "branch: main is the branch that every table has"),
        (FastForwardSpec, {"to": " "}, "to: ' ' is not the name of a branch"),
        (SetCurrentSnapshotSpec, {}, "snapshot_id: give either a snapshot or a tag"),
        (CherryPickSpec, {}, "snapshot_id: give either a snapshot or a wap_id"),
        (CherryPickSpec, {"wap_id": " "}, "wap_id: is empty"),
    ],
)
def test_wrong_input_is_named(kind: Any, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestError) as raised:
        kind(**fields)

    assert raised.value.code is ErrorCode.REQUEST_INVALID
    assert raised.value.message.startswith(problem)


@pytest.mark.parametrize(
    ("text", "hours"), [("2 d", 48), ("2days", 48), ("3 H", 3), ("90min", 1.5), ("3600000ms", 1)]
)
def test_durations_are_those_of_paimon(text: str, hours: float) -> None:
    assert parse_duration(text) == parse_option(text) == timedelta(hours=hours)
    assert parse_limit(text, NOW) == NOW - timedelta(hours=hours)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(172_800, "2 d"), (5400, "1.5 h"), (300, "5 min"), (59.96, "60 s"), (0.3, "0.3 s")],
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_options_without_a_unit_are_in_milliseconds() -> None:
    assert parse_option(" 3600000 ") == timedelta(hours=1)


def test_a_timestamp_is_a_moment() -> None:
    assert parse_limit("2026-01-31T13:00:00+02:00", NOW) == NOW - timedelta(hours=1)


def test_a_duration_beyond_the_calendar_is_its_beginning() -> None:
    assert parse_limit("99999999 d", NOW) == datetime.min.replace(tzinfo=UTC)


def test_a_new_tag_has_no_dry_run() -> None:
    catalog, table = CatalogSpec("paimon", "/w"), TableName("d", "t")
    with pytest.raises(RequestError, match="dry_run: a new tag has none"):
        JobRequest("id", table, catalog, CreateTagSpec("t"), dry_run=True)
    assert JobRequest("id", table, catalog, DeleteTagSpec("t"), dry_run=True).dry_run
    with pytest.raises(RequestError, match="dry_run: a new branch has none"):
        JobRequest("id", table, catalog, CreateBranchSpec("b"), dry_run=True)
