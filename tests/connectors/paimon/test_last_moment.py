"""What happens to a table in the last moment before a snapshot is stored."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.spi.connector import Connector
from tests.connectors.paimon.test_conflicts import begun, outcome
from tests.support.last_moment import (
    check_a_new_table,
    check_a_rollback,
    conflict_of,
    drop,
    make_anew,
)
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    create,
    inserts,
    read,
    snapshot_ids,
    store,
)


def test_a_new_table(connector: Connector) -> None:
    check_a_new_table(connector)


def test_a_new_table_between_two_tries(connector: Connector) -> None:
    create(connector, {"id": "int"})

    def make_anew_and_fail() -> None:
        make_anew(connector)
        raise OSError("connection reset")

    assert "was dropped while" in conflict_of(connector, make_anew_and_fail)

    assert (snapshot_ids(connector), read(connector)) == ([], [])
    append_with_pypaimon(connector.metadata.load_table(NAME), [{"id": 5}])
    assert snapshot_ids(connector) == [1]


def test_a_table_that_is_only_dropped(connector: Connector) -> None:
    create(connector, {"id": "int"})

    assert "was dropped while" in conflict_of(connector, lambda: drop(connector))

    create(connector, {"id": "int"})
    assert (snapshot_ids(connector), read(connector)) == ([], [])


def test_a_rollback(connector: Connector) -> None:
    check_a_rollback(connector)


def test_a_rollback_that_has_left_a_later_snapshot(connector: Connector) -> None:
    """The hint says an earlier one already; the statement's base is still there."""
    create(connector, {"id": "int"})
    for number in range(3):
        append(connector, [{"id": number}], f"op-{number}")
    now = connector.metadata.load_table(NAME)
    handle = begun(connector, now, lambda _: ())
    fragments = store(handle, inserts(now, [{"id": 9}]))
    snapshots = Path(now.native.table.table_path) / "snapshot"
    (snapshots / "snapshot-2").unlink()
    (snapshots / "LATEST").write_text("1")

    message = outcome(lambda: connector.writes.finish_merge(now, handle, fragments, {}))

    assert "Snapshot 3, on which the statement builds, has expired or was rolled back" in message
    assert snapshot_ids(connector) == [1, 3]
