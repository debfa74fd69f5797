"""What people meet with versions of a dimension: deletes, corrections, names, types, others."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.guards import Guards, Limit
from spark_jobs.contract.request import JobRequest, SqlSource, TableName, TableSource
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.contract.scd2 import Scd2Source
from spark_jobs.contract.scd2_merge import scd2_merge
from spark_jobs.contract.statements import (
    ColumnSpec,
    CreateTableSpec,
    DeleteAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    UpdateAllAction,
)
from spark_jobs.contract.table_versions import ChangeRange
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.harness import TARGET, Harness
from tests.engine.dimensions import at, batch, dimension, history, run, spec
from tests.engine.test_conflicts import Writes

pytestmark = pytest.mark.slow

_SHOWN = ["id", "v", "valid_from", "valid_to", "is_current", "is_deleted"]
_EVERY = ("append-cow", "primary-key", "iceberg-mor")


def _row(key: int, v: str | None, time: int = 0, *, gone: bool = False) -> dict[str, Any]:
    return {"id": key, "v": v, "n": "1", "u": "u", "at": at(time), "gone": gone}


def _stored(
    key: int, v: str, begin: int, end: int | None, *, deleted: bool = False
) -> dict[str, Any]:
    return {
        "id": key,
        "v": v,
        "n": Decimal("1.00"),
        "u": "u",
        "valid_from": at(begin),
        "valid_to": None if end is None else at(end),
        "is_current": end is None and not deleted,
        "is_deleted": deleted,
    }


def _applied(harness: Harness, versions: Scd2Source, folder: Path, *rows: dict[str, Any]) -> Any:
    result = run(harness, versions, batch(folder, rows))
    assert result.error is None, result.error
    return result


@pytest.mark.parametrize("kind", _EVERY)
def test_keys_that_a_snapshot_lacks_are_deleted_and_come_back(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    harness, folder = dimension(spark, tmp_path / "w", kind), tmp_path / "b"

    def day(time: int, **more: Any) -> Scd2Source:
        return spec(
            effective=None,
            as_of=str(at(time)),
            late="fail",
            delete_marker=None,
            **{"hard_deletes": "close", **more},
        )

    _applied(harness, day(1), folder, _row(1, "a"), _row(2, "b"), _row(3, "c"))
    _applied(harness, day(2), folder, _row(1, "a"))
    _applied(harness, day(3, hard_deletes="new_record"), folder, _row(2, "b"), _row(4, "d"))
    _applied(harness, day(4, hard_deletes="ignore"), folder, _row(1, "z"))
    empty = run(harness, day(5), batch(folder, []))
    old = run(harness, day(2), batch(folder, [_row(1, "y"), _row(2, "b"), _row(4, "d")]))

    assert empty.error is not None
    assert (empty.error.code, empty.error.name) == ("SOURCE_EMPTY", "")
    assert old.error is not None
    assert old.error.code in ("VERSION_DIFFERS", "VERSION_LATE")
    assert history(harness, _SHOWN) == [
        (1, "a", 1, 3, False, False),
        (1, "a", 3, 4, False, True),
        (1, "z", 4, None, True, False),
        (2, "b", 1, 2, False, False),
        (2, "b", 3, None, True, False),
        (3, "c", 1, 2, False, False),
        (4, "d", 3, None, True, False),
    ]

    meant = run(harness, day(6), batch(folder, []), guards=Guards(min_source_rows=Limit(0, None)))

    assert meant.error is None, meant.error
    assert not any(row[4] for row in history(harness, _SHOWN))


def test_corrections_and_late_rows_join_what_is_equal(spark: SparkSession, tmp_path: Path) -> None:
    stored = [
        *(_stored(1, "a", 1, 5), _stored(1, "b", 5, None)),
        # As a table that did not join them has it.
        *(_stored(2, "a", 1, 3), _stored(2, "a", 3, None)),
        *(_stored(3, "a", 1, 3), _stored(3, "b", 3, 6), _stored(3, "a", 6, None)),
    ]
    harness = dimension(spark, tmp_path / "w", "append-dv", files=[stored])
    folder, overwrite = tmp_path / "b", spec(corrections="overwrite")
    corrected = [_row(1, "b", 3), _row(2, "a", 2), _row(3, "a", 3)]

    kept = _applied(harness, spec(corrections="ignore"), folder, _row(3, "a", 3))
    refused = run(harness, spec(), batch(folder, [_row(3, "a", 3)]))
    _applied(harness, overwrite, folder, *corrected)
    again = _applied(harness, overwrite, folder, *corrected)

    assert (kept.status, again.status) == ("unchanged", "unchanged")
    assert refused.error is not None
    assert refused.error.code == "VERSION_DIFFERS"
    assert '{"id":3}' in refused.error.message
    assert history(harness, _SHOWN[:5]) == [
        (1, "a", 1, 3, False),
        (1, "b", 3, None, True),
        (2, "a", 1, 3, False),
        (2, "a", 3, None, True),
        (3, "a", 1, None, True),
    ]


def _upstream(harness: Harness, name: str, rows: str) -> None:
    """Merge rows, of which those with a NULL ``v`` are deleted, into another table by key."""
    cases = (
        MergeCase("matched", DeleteAction(), "s.v IS NULL"),
        MergeCase("matched", UpdateAllAction()),
        MergeCase("not_matched", InsertAllAction()),
    )
    source = SqlSource("s", f"SELECT * FROM VALUES {rows} AS x (id, v, n, u)")
    statement = MergeSpec("s", "t.id = s.id", cases, "t", "s")
    table = TableName("db", "upstream")
    request = JobRequest(name, table, harness.catalog, statement, (source,))
    result = Job(request, harness.spark, harness.open()).run()
    assert result.error is None, result.error


@pytest.mark.parametrize("kind", ["append-cow", "iceberg-mor"])
def test_changes_of_a_table_become_versions_once(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    harness = dimension(spark, tmp_path / "w", kind)
    kinds = {"id": "BIGINT", "v": "STRING", "n": "INT", "u": "STRING"}
    columns = tuple(ColumnSpec(name, each) for name, each in kinds.items())
    harness.connector.metadata.create_table(
        TableName("db", "upstream"), CreateTableSpec(columns, (), (), {})
    )
    changes = TableSource("rows", TableName("db", "upstream"), changes=ChangeRange("all", net=True))

    def consumed(time: int) -> str:
        versions = spec(
            effective=None, as_of=str(at(time)), late="fail", delete_marker="_change_type"
        )
        result = run(harness, versions, changes)
        assert result.error is None, result.error
        return result.status

    _upstream(harness, "one", "(1, 'a', 1, 'x'), (2, 'b', 1, 'x'), (3, 'c', 1, 'x')")
    statuses = [consumed(1), consumed(2)]
    _upstream(harness, "two", "(1, 'z', 1, 'x'), (2, NULL, 1, 'x'), (3, 'c', 1, 'y')")
    statuses += [consumed(3), consumed(4)]

    assert statuses == ["committed", "unchanged", "committed", "unchanged"]
    assert history(harness, _SHOWN[:5]) == [
        (1, "a", 1, 3, False),
        (1, "z", 3, None, True),
        (2, "b", 1, 3, False),
        (3, "c", 1, None, True),
    ]


@pytest.mark.parametrize("kind", ["append-cow", "primary-key", "iceberg-cow"])
def test_a_commit_on_the_same_keys_lets_the_run_begin_again(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    harness = dimension(spark, tmp_path / "w", kind, files=[[_stored(1, "a", 1, None)]])
    folder, connector = tmp_path / "b", harness.open()
    others = [lambda: _applied(harness, spec(), folder, _row(1, "b", 2), _row(7, "n", 2))]
    racing = Writes(connector.writes, begun=lambda: others and others.pop()())
    versions = spec()
    sources = (batch(folder, [_row(1, "c", 4), _row(7, "m", 3)]), versions)
    request = JobRequest("race", TARGET, harness.catalog, scd2_merge(versions), sources)

    result = Job(request, spark, replace(connector, writes=racing)).run()

    assert result.error is None, result.error
    assert result.metrics.attempts == 2
    assert history(harness, _SHOWN[:5]) == [
        (1, "a", 1, 2, False),
        (1, "b", 2, 4, False),
        (1, "c", 4, None, True),
        (7, "n", 2, 3, False),
        (7, "m", 3, None, True),
    ]


@pytest.mark.parametrize("kind", ["append-cow", "iceberg-mor"])
def test_names_types_and_dates(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    columns = (
        ColumnSpec("Id", "STRING", nullable=False),
        ColumnSpec("part no.", "INT", nullable=False),
        ColumnSpec("info", "STRUCT<city: STRING, tags: ARRAY<STRING>>"),
        ColumnSpec("attrs", "MAP<STRING, INT>"),
        ColumnSpec("score", "DOUBLE"),
        ColumnSpec("From.Day", "DATE", nullable=False),
        ColumnSpec("to", "DATE", nullable=False),
    )
    harness = dimension(spark, tmp_path / "w", kind, columns)
    versions = Scd2Source(
        "merge_versions",
        "rows",
        ("ID", "Part No."),
        "from.day",
        "TO",
        tracked=("INFO", "score"),
        effective="At",
        late="insert_between",
        open_end="9999-12-31",
    )
    schema = pa.schema(
        {
            "id": pa.string(),
            "PART NO.": pa.int64(),
            "info": pa.struct({"tags": pa.list_(pa.string()), "CITY": pa.string()}),
            "attrs": pa.map_(pa.string(), pa.int32()),
            "score": pa.float64(),
            "at": pa.date32(),
        }
    )

    def row(day: int, city: str | None, score: float | None) -> dict[str, Any]:
        info = None if city is None else {"tags": [city, None], "CITY": city}
        shown = {"id": "k", "PART NO.": 1, "info": info, "attrs": [("a", day)], "score": score}
        return {**shown, "at": dt.date(2026, 1, day)}

    rows = [row(1, "x", float("nan")), row(2, "x", float("nan")), row(3, None, -0.0)]
    rows.append(row(4, None, 0.0))
    source = batch(tmp_path / "b", rows, schema)

    first, again = run(harness, versions, source), run(harness, versions, source)

    assert (first.error, again.error) == (None, None)
    assert again.status == "unchanged"
    found = sorted(harness.read(), key=lambda each: each["From.Day"])
    assert [(each["From.Day"].day, each["to"], each["attrs"]) for each in found] == [
        (1, dt.date(2026, 1, 3), [("a", 1)]),
        (3, dt.date(9999, 12, 31), [("a", 3)]),
    ]


def test_a_column_is_tracked_later(spark: SparkSession, tmp_path: Path) -> None:
    harness, folder = dimension(spark, tmp_path / "w", "append-cow"), tmp_path / "b"
    changed = [{**_row(1, "a", 2), "u": "new"}, {**_row(2, "b", 2), "u": "u"}]
    _applied(harness, spec(), folder, _row(1, "a", 1), _row(2, "b", 1))

    kept = _applied(harness, spec(), folder, *changed)
    later = _applied(harness, spec(tracked=("v", "n", "u")), folder, *changed)

    assert (kept.status, later.metrics.inserted, later.metrics.updated) == ("unchanged", 1, 1)
    assert history(harness, ["id", "u", "valid_from", "valid_to"]) == [
        (1, "u", 1, 2),
        (1, "new", 2, None),
        (2, "u", 1, None),
    ]


def test_guards_checks_and_dry_runs_are_those_of_a_merge(
    spark: SparkSession, tmp_path: Path
) -> None:
    harness, folder = dimension(spark, tmp_path / "w", "append-cow"), tmp_path / "b"
    rows = [_row(1, "a", 1), _row(1, "b", 2), _row(2, "c", 1)]
    source = batch(folder, rows)
    check = RowCheck("one current", "SELECT id FROM new_rows WHERE is_current AND v = 'b'")

    planned = run(harness, spec(), source, dry_run=True, plan_only=True)
    dry = run(harness, spec(), source, dry_run=True)
    guarded = run(harness, spec(), source, guards=Guards(max_inserted_rows=Limit(2, None)))
    checked = run(harness, spec(), source, guards=Guards(checks=(check,)))
    done = run(harness, spec(), source, approved=dry.ticket)

    assert (planned.status, dry.metrics.inserted, done.status) == ("planned", 3, "committed")
    for failed, code in ((guarded, "GUARD_FAILED"), (checked, "GUARD_FAILED")):
        assert failed.error is not None
        assert failed.error.code == code
    assert len(history(harness)) == 3


@pytest.mark.parametrize("what", ["source", "version", "versions"])
def test_an_approval_of_versions_is_of_rows_versions_and_parameters(
    spark: SparkSession, tmp_path: Path, what: str
) -> None:
    harness, folder = dimension(spark, tmp_path / "w", "append-cow"), tmp_path / "b"
    _applied(harness, spec(), tmp_path / "first", _row(1, "a", 1))
    source, asked = batch(folder, [_row(1, "b", 3)]), spec()
    dry = run(harness, asked, source, dry_run=True)
    if what == "source":
        (folder / "batch-0.parquet").unlink()
        source = batch(folder, [_row(1, "c", 3)])
    elif what == "version":
        _applied(harness, spec(), tmp_path / "other", _row(1, "other", 2))
    else:
        asked = spec(tracked=("v",))
    before = harness.state()

    stale = run(harness, asked, source, approved=dry.ticket)

    assert stale.error is not None
    assert stale.error.code == "APPROVAL_STALE"
    after = harness.state()
    assert (after.snapshot_id, after.on_disk) == (before.snapshot_id, before.on_disk)
