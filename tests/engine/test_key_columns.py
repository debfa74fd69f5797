"""Join keys that are expressions of the source: evaluated with it, read without a job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import Behaviour, insert, matched, not_matched, update
from tests.conformance.check import request_of
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS
from tests.support.statement_cost import counted

pytestmark = pytest.mark.slow
CLAUSES = (
    matched(update(v="s.v")),
    not_matched(insert(id="CAST(1000 + s.n AS BIGINT)", req="'r'")),
)
# Two rows of the target, one of no row, one that no INT holds, and NULL.
SOURCE = (
    "VALUES (100, 'a', 1), (120, 'b', 2), (7, 'c', 3), (5000000000, 'd', 4), (NULL, 'e', 5)"
    " AS s(k, v, n)"
)


@pytest.mark.parametrize(
    ("on", "inserted"),
    [
        ("t.id = s.k", 3),
        ("t.id = s.k + 1 - 1", 3),
        ("t.k = s.k * 1L", 3),
        ("t.id = s.k * 1L AND t.k = s.k + 0", 3),
        ("t.id = s.k + extract(YEAR FROM current_date()) * 0 -- now\n", 3),
    ],
)
def test_a_key_takes_no_job_of_its_own(
    make_table: Callable[..., Harness], on: str, inserted: int
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=False)
    before = {row["id"]: row["v"] for row in harness.read()}
    request = request_of(Behaviour("", SOURCE, CLAUSES, on=on), harness)

    with counted(harness.spark) as cost:
        result = Job(request, harness.spark, harness.open()).run()

    assert result.error is None, result.error
    assert (result.metrics.updated, result.metrics.inserted) == (2, inserted)
    found = {row["id"]: row["v"] for row in harness.read()}
    assert found == {**before, 100: "a", 120: "b", 1003: None, 1004: None, 1005: None}
    assert cost.jobs <= 5, "the source, its broadcast or shuffle, the target, and the sink"
