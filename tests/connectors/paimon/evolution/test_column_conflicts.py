"""Which files of columns of others are in the way of a commit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import PlannedFile
from tests.connectors.paimon.evolution.evolving import VECTORS, Update, filled, update
from tests.support.paimon_tables import NAME, begin, read, snapshot_ids

ISOLATIONS = ("serializable", "snapshot")


def refused(statement: Update) -> str:
    """The conflict."""
    before = read(statement.connector)
    with pytest.raises(CommitError) as caught:
        statement.publish()
    assert caught.value.code is ErrorCode.COMMIT_CONFLICT
    assert read(statement.connector) == before
    return caught.value.message


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_updates_of_different_columns_both_land(connector: Connector, isolation: str) -> None:
    filled(connector)
    one = Update(connector, {(0, 1): {"a": 10}}, reads=frozenset(["id"]), isolation=isolation)
    other = Update(connector, {(0, 1): {"b": "x"}}, reads=frozenset(["id"]), isolation=isolation)

    one.publish()
    other.publish()

    assert {"id": 1, "p": 0, "a": 10, "b": "x"} in read(connector)
    assert snapshot_ids(connector) == [1, 2, 3, 4]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_updates_of_one_column_of_a_range_conflict(connector: Connector, isolation: str) -> None:
    filled(connector)
    one = Update(connector, {(0, 1): {"a": 10}}, reads=frozenset(["id"]), isolation=isolation)
    other = Update(connector, {(0, 2): {"a": 20}}, reads=frozenset(["id"]), isolation=isolation)
    one.publish()

    assert "columns of rows that the statement changes" in refused(other)

    update(connector, {(0, 2): {"a": 20}})
    assert [row["a"] for row in read(connector)][:3] == [0, 10, 20]


def test_updates_of_one_column_of_different_ranges_both_land(connector: Connector) -> None:
    filled(connector)
    one = Update(connector, {(0, 1): {"a": 10}}, reads=frozenset(["id"]))
    other = Update(connector, {(1, 0): {"a": 20}}, reads=frozenset(["id"]))

    one.publish()
    other.publish()

    assert [row["a"] for row in read(connector)] == [0, 10, 2, 3, 20, 5, 6, 7]


def test_a_column_that_the_statement_read(connector: Connector) -> None:
    """It matters only where the statement may have read it, and only under serializable."""
    filled(connector)

    def first(files: Sequence[PlannedFile]) -> list[PlannedFile]:
        return [file for file in files if file.partition["p"] == 0]

    reads = frozenset(["id", "a"])
    loose = Update(connector, {(0, 1): {"b": "x"}}, reads=reads, isolation="snapshot")
    elsewhere = Update(connector, {(0, 2): {"b": "x"}}, reads=reads, read_set=first)
    update(connector, {(1, 0): {"a": 20}})
    elsewhere.publish()
    strict = Update(connector, {(0, 1): {"b": "z"}}, reads=reads, read_set=first)
    update(connector, {(0, 3): {"a": 30}})

    assert "columns that the statement read" in refused(strict)
    assert "columns of rows" in refused(loose)  # ``elsewhere`` wrote b of the same range


def test_old_values_count_too(connector: Connector) -> None:
    """A row that another statement moved out of the condition's reach was read."""
    filled(connector)

    def low(files: Sequence[PlannedFile]) -> list[PlannedFile]:
        return [file for file in files if file.ranges["a"].minimum < 4]

    statement = Update(connector, {(1, 0): {"b": "x"}}, reads=frozenset(["a"]), read_set=low)
    update(connector, {(0, n): {"a": 100 + n} for n in range(4)})

    assert "columns that the statement read" in refused(statement)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_range_that_is_gone(connector: Connector, isolation: str) -> None:
    table = filled(connector)
    late = Update(connector, {(0, 1): {"a": 10}}, reads=frozenset(["id"]), isolation=isolation)
    first, _ = connector.metadata.plan_files(table)
    handle = begin(connector, table, "drop")
    gone = connector.writes.drop_files(table, handle, [first])
    connector.writes.finish_merge(table, handle, gone, {})

    assert "files that the statement changes" in refused(late)


def test_new_columns_of_a_range_that_is_dropped(connector: Connector) -> None:
    """The file would be left without the rest of its rows."""
    table = filled(connector)
    first, _ = connector.metadata.plan_files(table)
    handle = begin(connector, table, "drop")
    gone = connector.writes.drop_files(table, handle, [first])
    update(connector, {(0, 1): {"a": 10}})

    with pytest.raises(CommitError, match="columns of rows that the statement changes"):
        connector.writes.finish_merge(table, handle, gone, {})

    assert len(read(connector)) == 8


def test_deleted_and_updated_rows_of_one_range(connector: Connector) -> None:
    filled(connector, VECTORS)
    late = Update(connector, {(0, 1): {"a": 10}}, isolation="snapshot")
    gone = Update(connector, {(0, 2): {}}, operation=rows.DELETE, reads=frozenset(["id"]))
    update(connector, {(0, 3): {"b": "x"}})

    gone.publish()

    assert "files that the statement changes" in refused(late)
    assert [row["id"] for row in read(connector)] == [0, 1, 3, 4, 5, 6, 7]
    assert connector.metadata.load_table(NAME).snapshot_id == 4
