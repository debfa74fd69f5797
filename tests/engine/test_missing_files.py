"""Data files that are gone or damaged when a statement reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.merge.physical_plan import Plan, PlanLimits
from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import Behaviour, delete_from, fails, matched, update
from tests.conformance.check import check_failure, request_of
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS

_MERGE = Behaviour("", "VALUES (101) AS s(id)", (matched(update(n="1")),))


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["gone before", "gone while it runs", "damaged"])
@pytest.mark.parametrize(
    ("statement", "plan", "reading"),
    [
        (delete_from("", "n = 1"), None, "read"),
        (_MERGE, "join", "read"),
        (_MERGE, "located", "arrow_rows"),
        (_MERGE, "prepared", "arrow_rows"),
    ],
    ids=["delete", "join", "located", "prepared"],
)
def test_a_data_file_that_can_not_be_read(
    statement: Behaviour,
    plan: Plan | None,
    reading: str,
    damage: str,
    make_table: Callable[..., Harness],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    victims = [path for path in harness.live_files() if "p=a" in str(path)]
    connector = harness.open()
    snapshot = harness.latest_snapshot()

    def harm() -> None:
        for path in map(Path, victims):
            path.write_bytes(b"PAR1 no PAR1") if damage == "damaged" else path.unlink()

    def read_then_harm(*arguments: object) -> object:
        frame = read(*arguments)
        harm()
        return frame

    read = getattr(connector.scan, reading)
    if damage == "gone while it runs":
        monkeypatch.setattr(connector.scan, reading, read_then_harm)
    else:
        harm()
    request = request_of(statement, harness)
    request = replace(request, sources=request.sources[-1:])

    result = Job(request, harness.spark, connector, limits=PlanLimits(plan=plan)).run()

    check_failure(result, fails(ErrorCode.DATA_FILE_UNREADABLE, ".parquet"))
    assert harness.latest_snapshot() == snapshot
