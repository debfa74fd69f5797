"""Another writer commits between a statement's base and its publication: never a lost row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from tests.faults.drivers import Drivers
from tests.faults.looking import look
from tests.faults.merges import OLD, Work, run
from tests.support.paimon_tables import NAME, append_with_pypaimon

_TABLE = str(NAME)
_OTHER = {"id": 500, "v": "other", "p": 1}
_MERGE, _INSERT = Work("mine", 100), Work("mine", 100, changes=False)
_ROUNDS = 20


def _native(warehouse: Path) -> Any:
    return open_connector(CatalogSpec("paimon", str(warehouse)), {}).metadata.load_table(NAME)


def _append(warehouse: Path) -> None:
    append_with_pypaimon(_native(warehouse), [_OTHER])


def _overwrite(warehouse: Path) -> None:
    table = _native(warehouse).native.table
    builder = table.new_batch_write_builder().overwrite({"p": 0})
    write, commit = builder.new_write(), builder.new_commit()
    import pyarrow as pa

    from tests.support.paimon_tables import schema_of

    rows = [{"id": 501, "v": "overwritten", "p": 0}]
    write.write_arrow(pa.Table.from_pylist(rows, schema=schema_of(_native(warehouse))))
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()


def _merge(warehouse: Path) -> None:
    assert run(warehouse, Work("theirs", 200), 1).error is None


@pytest.mark.parametrize("work", [_MERGE, _INSERT], ids=["merge", "insert"])
@pytest.mark.parametrize("other", [_append, _overwrite, _merge])
def test_commit_in_between(
    fresh: Callable[[], Path], work: Work, other: Callable[[Path], None]
) -> None:
    warehouse = fresh()
    theirs: list[Any] = []

    def between() -> None:
        other(warehouse)
        theirs.append(look(warehouse, _TABLE))

    result = run(warehouse, work, 1, between)

    assert result.error is not None
    assert result.error.code == "COMMIT_CONFLICT"
    assert result.error.retryable
    after = look(warehouse, _TABLE)
    assert after.rows == theirs[0].rows
    assert after.made_by == theirs[0].made_by
    assert after.guards == frozenset()
    # Of the refused merge no data file is left; the old files belong to the snapshot before.
    assert after.unreferenced <= theirs[0].unreferenced
    assert not [each for each in after.on_disk if each not in theirs[0].on_disk]


@pytest.mark.parametrize("changes", [True, False])
def test_two_publish_at_the_same_time(
    drivers: Drivers, fresh: Callable[[], Path], changes: bool
) -> None:
    """From one base, exactly one wins; the other one leaves nothing behind."""
    for number in range(_ROUNDS):
        warehouse = fresh()
        works = [Work(f"{name}-{number}", 100 + i, changes) for i, name in enumerate("ab")]

        answers = drivers.do("race", warehouse, *works)

        outcomes = {w.operation_id: a["value"] for w, a in zip(works, answers, strict=True)}
        assert sorted(outcomes.values()) == ["COMMIT_CONFLICT", "committed"], answers
        (winner,) = (work for work in works if outcomes[work.operation_id] == "committed")
        after = look(warehouse, _TABLE)
        assert after.rows == winner.expected
        assert after.made_by[1:] == [winner.operation_id]
        assert after.guards == frozenset()
        assert len(after.on_disk) == 2 + (2 if changes else 1)


def test_two_tries_of_one_operation_at_the_same_time(
    drivers: Drivers, fresh: Callable[[], Path]
) -> None:
    """The driver of a lost try may still live: both publish, one snapshot is made."""
    for _ in range(_ROUNDS // 2):
        warehouse = fresh()
        before = look(warehouse, _TABLE).on_disk

        answers = drivers.do("race", warehouse, _MERGE, _MERGE)

        lost, won = sorted(each["value"] for each in answers)
        assert won == "committed"
        # Given up: the other one began while this one had just begun.
        assert lost in ("COMMIT_CONFLICT", "RUN_GIVEN_UP")
        after = look(warehouse, _TABLE)
        assert after.rows == _MERGE.expected
        assert after.made_by.count("mine") == 1
        assert after.unreferenced <= before
        retried = run(warehouse, _MERGE, 2)
        assert (retried.status, retried.new_snapshot_id) == ("committed", 2)
        assert look(warehouse, _TABLE).guards == frozenset()


def test_many_inserts_of_two_writers(drivers: Drivers, fresh: Callable[[], Path]) -> None:
    """Two processes insert as fast as they can, each trying again after a conflict."""
    warehouse = fresh()
    for number in range(_ROUNDS):
        works = [Work(f"{name}-{number}", 1000 + 2 * number + i, changes=False)
                 for i, name in enumerate("ab")]  # fmt: skip
        answers = drivers.do("until-done", warehouse, *works)
        assert [each["signal"] for each in answers] == [0, 0]
        assert min(each["value"] for each in answers) == 1

    after = look(warehouse, _TABLE)
    assert Counter(row["id"] for row in after.rows) == Counter(
        [*(row["id"] for row in OLD), *range(1000, 1000 + 2 * _ROUNDS)]
    )
    assert sorted(after.made_by[1:]) == sorted(f"{n}-{i}" for n in "ab" for i in range(_ROUNDS))
    assert after.guards == frozenset()
