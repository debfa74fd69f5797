"""A nondeterministic source is evaluated once, whatever dies afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.cluster.merging import ClusterMerges
from tests.cluster.processes import ancestor, kill, running, stop, wait_for
from tests.conformance.behaviour import Behaviour, insert, matched, not_matched, update
from tests.conformance.tables import ORDERS

_SOURCE = """(
    SELECT id, uuid() AS u, CAST(rand() * 1000000000 AS INT) AS r, rand() < 0.5 AS coin
    FROM (SELECT id FROM range(100, 150) UNION ALL SELECT id FROM range(1000, 1100))
) AS s"""
# Every joined row leaves a file in the executor's temporary folder: the join can be watched.
_TRACE = "length(java_method('java.io.File', 'createTempFile', 'joined-', '.row'))"
_SLEEP = "coalesce(length(java_method('java.lang.Thread', 'sleep', CAST(100 AS BIGINT))), 0)"


def _merge(traced: str) -> Behaviour:
    r = f"s.r + 0 * ({traced})"
    assigned = {"k": "s.r", "n": r, "v": "s.u", "req": "concat(s.u, '')"}
    return Behaviour(
        "random values",
        _SOURCE,
        (
            matched(update(assigned), "s.coin"),
            matched(update(**{**assigned, "n": f"-({r})"})),
            not_matched(insert(id="s.id", p="if(s.coin, 'heads', 'tails')", **assigned)),
        ),
        on="t.id = s.id AND s.r >= 0 AND s.u IS NOT NULL",
    )


def _materialised(warehouse: Path, folder: Path) -> dict[int, dict[str, Any]]:
    """The source's rows by id, from the files that the job reads them from."""
    (scratch,) = warehouse.glob("_operations/*/source-*")
    shutil.copytree(scratch, folder)
    found = {}
    for path in folder.glob("*.parquet"):
        for row in pq.read_table(path).to_pylist():
            # Columns are stored by number, in the order of their names.
            coin, id_, r, u = (row[f"c{i}"] for i in range(4))
            found[id_] = {"coin": coin, "r": r, "u": u}
    return found


def _check(rows: list[dict[str, Any]], source: dict[int, dict[str, Any]]) -> None:
    """Every row of the source is in the table with exactly its own values."""
    assert len(source) == 150
    by_id = {row["id"]: row for row in rows}
    assert len(by_id) == len(rows)
    known = {row["id"] for row in ORDERS.rows}
    assert by_id.keys() == known | source.keys()
    for id_, made in source.items():
        row = by_id[id_]
        plus = made["coin"] or id_ not in known
        expected = (made["r"], made["r"] if plus else -made["r"], made["u"], made["u"])
        assert (row["k"], row["n"], row["v"], row["req"]) == expected
        if id_ not in known:
            assert row["p"] == ("heads" if made["coin"] else "tails")


@pytest.mark.by_turns(2, 1)
@pytest.mark.parametrize(
    "moment",
    [
        # The sink comes later: when its executor is lost, the join runs again as well.
        pytest.param("in the join", marks=pytest.mark.extended),
        "in the sink",
    ],
)
def test_executor_killed_after_materialisation(
    merges: ClusterMerges, tmp_path: Path, moment: str
) -> None:
    in_join = moment == "in the join"
    merge = merges.start(
        _merge(f"{_TRACE} + {_SLEEP}" if in_join else _TRACE),
        points=() if in_join else ("sink",),
        # Four join tasks, so that both executors have some.
        conf={"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.enabled": "false"},
    )
    folder = merge.submission.folder

    def joined() -> int:
        return len(list(folder.glob("tmp/joined-*.row")))

    if in_join:
        wait_for("the join", lambda: joined() >= 40)
        victim = running("CoarseGrainedExecutorBackend", str(folder))[0]
    else:
        victim = ancestor(merge.submission.hit("sink"), "CoarseGrainedExecutorBackend")
        assert joined() == 150
    stop(victim)
    source = _materialised(merge.harness.warehouse, tmp_path / "copy")
    kill(victim)

    result = merge.result()

    _check(merge.harness.state().rows, source)
    assert (result.metrics.inserted, result.metrics.updated) == (120, 30)
    # Spark observes rows that it joins again a second time.
    assert result.metrics.matched == 30
    assert joined() > 150, "some rows were joined a second time"
    reasons = {task["Task End Reason"]["Reason"] for task in merge.submission.tasks}
    assert "ExecutorLostFailure" in reasons
