"""Groups, limits, conflicts and later tries of compactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactionReport, CompactSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.runtime.back_off import ATTEMPTS
from spark_jobs.run import summary
from spark_jobs.spi.connector import Connector
from tests.engine.compaction_lake import Lake, in_turn, names, nothing, report_of
from tests.support.compaction_runs import compact
from tests.support.paimon_tables import (
    append,
    create,
    data_files,
    read,
    snapshot_ids,
)


class Killed(BaseException):
    """The driver is gone."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def groups(tmp_path: Path) -> Lake:
    """Each partition is a group."""
    return Lake(tmp_path, groups_of=1)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]


def killed() -> None:
    raise Killed


def test_the_worst_partitions_come_first(groups: Lake) -> None:
    result = groups.compact()

    report = report_of(result)
    assert result.status == "committed"
    assert names(report) == ["p=2", "p=1", "p=0"]
    assert report.snapshots == (9, 10, 11)
    assert (report.files_before, report.files_after, report.rows) == (21, 3, 21)
    assert (result.base_snapshot_id, result.new_snapshot_id) == (8, 11)
    assert result.partitions == ("p=0", "p=1", "p=2")
    assert {"plan", "compact", "commit"} <= result.metrics.seconds.keys()
    assert (result.metrics.files_removed, result.metrics.carried) == (21, 21)
    assert read(groups.plain) == groups.rows
    assert groups.is_clean()


def test_nothing_worth_it_makes_no_snapshot(lake: Lake) -> None:
    lake.compact()
    result = lake.compact(operation_id="compact-2")

    report = report_of(result)
    assert result.status == "unchanged"
    assert report == CompactionReport()
    assert snapshot_ids(lake.plain)[-1] == 9
    assert lake.is_clean()


def test_a_retry_after_success_returns_the_result(lake: Lake) -> None:
    first = lake.compact()
    append(lake.plain, [{"id": 1000 + n, "p": 0} for n in range(3)], "more")

    assert lake.compact(try_number=2) == first
    assert snapshot_ids(lake.plain)[-1] == 10


def test_other_work_of_the_same_id_is_refused(lake: Lake) -> None:
    lake.compact()
    result = lake.compact(CompactSpec(mode="full"), try_number=2)
    assert result.error is not None
    assert result.error.code == "OPERATION_ID_REUSED"


@pytest.mark.parametrize(
    ("limits", "done", "left"),
    [
        ({"max_partitions": 1}, [2], 2),
        ({"max_partitions": 2}, [2, 1], 1),
        ({"max_bytes": "1 b"}, [2], 2),
        ({"max_bytes": "1 gb", "max_partitions": 9}, [2, 1, 0], 0),
    ],
    ids=str,
)
def test_limits(lake: Lake, limits: Mapping[str, Any], done: Sequence[int], left: int) -> None:
    report = report_of(lake.compact(CompactSpec(**limits)))

    assert names(report) == [f"p={p}" for p in done]
    assert (report.partitions_compacted, report.partitions_left) == (len(done), left)
    assert [p for p, files in lake.files.items() if files == 1] == sorted(done)
    assert read(lake.plain) == lake.rows


class TestALaterTry:
    def test_it_goes_on_where_a_killed_one_ended(self, groups: Lake) -> None:
        with pytest.raises(Killed):
            groups.compact(before_publication=in_turn(nothing, killed))
        assert groups.files == {0: 6, 1: 7, 2: 1}
        # What others add meanwhile is not this operation's work any more.
        append(groups.plain, [{"id": 1000, "p": 2}], "more")
        expected = read(groups.plain)

        result = groups.compact(try_number=2)

        report = report_of(result)
        assert result.status == "committed"
        assert groups.files == {0: 1, 1: 1, 2: 2}
        assert (report.partitions_compacted, report.files_before, report.files_after) == (3, 21, 3)
        assert report.snapshots == (9, 11, 12)
        assert read(groups.plain) == expected
        assert not list(groups.folder.glob("consumer/consumer-merge-compact*"))

    def test_the_limits_are_those_of_all_tries(self, groups: Lake) -> None:
        spec = CompactSpec(max_partitions=2, max_bytes="100 tb")
        with pytest.raises(Killed):
            groups.compact(spec, before_publication=in_turn(nothing, killed))

        report = report_of(groups.compact(spec, try_number=2))

        assert groups.files == {0: 6, 1: 1, 2: 1}
        assert (report.partitions_compacted, report.partitions_left) == (2, 1)

    def test_nothing_is_left_of_the_limits(self, groups: Lake) -> None:
        spec = CompactSpec(max_partitions=1)

        def dies_after_publishing(*_: Any) -> None:
            raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "spark_jobs.engine.compaction.tally.Tally.published", dies_after_publishing
            )
            with pytest.raises(Killed):
                groups.compact(spec)
        result = groups.compact(spec, try_number=2)

        report = report_of(result)
        assert (result.status, result.new_snapshot_id) == ("committed", 9)
        assert groups.files == {0: 6, 1: 7, 2: 1}
        assert (report.partitions_compacted, report.partitions_left) == (1, 2)


class TestConflicts:
    def test_what_others_changed_is_planned_again(
        self, lake: Lake, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level("INFO"):
            result = lake.compact(before_publication=in_turn(lambda: lake.delete(1, "other")))

        report = report_of(result)
        assert result.status == "committed"
        assert report.snapshots == (10, 11)
        assert (report.files_before, report.files_after) == (6 + 6 + 8, 3)
        assert result.metrics.attempts == 2
        assert summary(result).endswith(", in 2 rounds")
        assert warnings(caplog) == [
            f"conflict in round 1 of {ATTEMPTS}: other writers changed files of 1 of 3 partitions"
        ]
        assert lake.files == {0: 1, 1: 1, 2: 1}
        assert len(read(lake.plain)) == 20
        assert lake.is_clean()

    def test_it_gives_up_after_some_rounds(self, lake: Lake) -> None:
        rounds = iter(range(ATTEMPTS))
        # Each deletion needs one more file of partition 0.
        append_ids = iter(range(5000, 6000))

        def interfere() -> None:
            lake.delete(0, f"other-{next(rounds)}")
            for _ in range(2):
                append(lake.plain, [{"id": (n := next(append_ids)), "p": 0}], f"more-{n}")

        result = lake.compact(before_publication=interfere)

        report = report_of(result)
        assert result.status == "failed"
        assert result.error is not None
        assert (result.error.code, result.error.retryable) == ("COMMIT_CONFLICT", True)
        assert "p=0 (COMMIT_CONFLICT: " in result.error.message
        assert result.metrics.attempts == ATTEMPTS
        assert result.error.message.endswith("Compacted: p=2, p=1.")
        assert (report.partitions_compacted, report.partitions_failed) == (2, 1)
        assert names(report) == ["p=0", "p=2", "p=1"]
        assert (lake.files[1], lake.files[2]) == (1, 1)

    def test_a_changed_schema_makes_all_be_planned_again(
        self, groups: Lake, caplog: pytest.LogCaptureFixture
    ) -> None:
        from pypaimon.schema.data_types import AtomicType
        from pypaimon.schema.schema_change import SchemaChange

        def add_column() -> None:
            metadata: Any = groups.plain.metadata
            change = SchemaChange.add_column("more", AtomicType("INT"))
            metadata._catalog.alter_table("shop.orders", [change], False)

        result = groups.compact(before_publication=in_turn(nothing, add_column))

        assert result.status == "committed"
        assert report_of(result).snapshots == (9, 10, 11)
        assert result.metrics.attempts == 2
        (warning,) = warnings(caplog)
        assert warning.startswith(f"conflict in round 1 of {ATTEMPTS}: ")
        assert groups.files == {0: 1, 1: 1, 2: 1}
        assert [row["id"] for row in read(groups.plain)] == [row["id"] for row in groups.rows]
        assert groups.is_clean()


def test_a_spec_without_a_match_is_told(lake: Lake) -> None:
    spec = CompactSpec(partitions=({"p": "1"}, {"P": "7"}))

    result = lake.compact(spec)

    assert result.status == "committed"
    assert result.warnings == ("partitions[1]: the table has no partition p = 7",)
    assert lake.files == {0: 6, 1: 1, 2: 8}


@pytest.mark.parametrize(
    ("partition", "code", "problem"),
    [
        ({"id": "1"}, "COLUMN_NOT_FOUND", "id is not a partition column of shop.orders"),
        ({"x": "1"}, "COLUMN_NOT_FOUND", "x is not a column of shop.orders"),
        ({}, "REQUEST_INVALID", "is empty"),
    ],
)
def test_a_spec_that_names_no_partition_column(
    lake: Lake, partition: dict[str, str], code: str, problem: str
) -> None:
    result = lake.compact(CompactSpec(partitions=(partition,)))
    assert result.error is not None
    assert (result.error.code, result.error.message) == (code, f"partitions[0]: {problem}")
    assert lake.files == {0: 6, 1: 7, 2: 8}


def compacted(warehouse: Path, keys: Sequence[str], spec: CompactSpec) -> JobResult:
    """The compaction of a table whose column ``p`` is empty, NULL and ``x`` in six files each."""
    catalog = CatalogSpec("paimon", str(warehouse))
    connector = open_connector(catalog, {})
    create(connector, {"id": "int", "p": "string"}, keys)
    for number in range(6):
        append(connector, [{"id": number, "p": p} for p in ("", None, "x")], f"op-{number}")
    before = read(connector)
    result = compact(connector, catalog, spec)
    assert read(connector) == before
    return result


def test_the_empty_spec_of_a_table_without_partitions(tmp_path: Path) -> None:
    result = compacted(tmp_path, (), CompactSpec(partitions=({},)))
    assert (result.status, result.warnings) == ("committed", ())
    assert report_of(result).files_before == 6


def test_the_empty_spec_of_a_table_without_files(tmp_path: Path) -> None:
    catalog = CatalogSpec("paimon", str(tmp_path))
    connector = open_connector(catalog, {})
    create(connector, {"id": "int"})
    result = compact(connector, catalog, CompactSpec(partitions=({},)))
    assert (result.status, result.warnings) == ("unchanged", ())


def test_the_partition_of_an_empty_text(tmp_path: Path) -> None:
    result = compacted(tmp_path, ("p",), CompactSpec(partitions=({"p": "''"},)))
    assert (result.status, result.warnings) == ("committed", ())
    assert [each.values for each in report_of(result).partitions] == [{"p": ""}]


def test_a_dry_run_leaves_nothing(lake: Lake) -> None:
    before = set(lake.warehouse.rglob("*"))
    connector: Connector = lake.connector
    result = compact(
        connector,
        lake.catalog,
        CompactSpec(max_partitions=2),
        dry_run=True,
    )

    report = report_of(result)
    assert (result.status, report.snapshots) == ("dry_run", ())
    assert names(report) == ["p=2", "p=1"]
    assert (report.files_before, report.files_after, report.rows) == (15, 2, 15)
    assert report.partitions_left == 1
    assert set(lake.warehouse.rglob("*")) == before
    assert data_files(lake.warehouse)
