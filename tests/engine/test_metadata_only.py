"""What partitions and statistics decide is done without reading data files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.contract.result import Metrics
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import Behaviour, delete_from, update_set
from tests.conformance.check import request_of
from tests.conformance.connectors import COPY_ON_WRITE
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS

_FILES = len(ORDERS.files)


def run(behaviour: Behaviour, harness: Harness) -> Metrics:
    result = Job(request_of(behaviour, harness), harness.spark, harness.open()).run()
    assert result.error is None, result.error
    return result.metrics


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("connector", COPY_ON_WRITE)
@pytest.mark.parametrize(
    ("statement", "scanned", "removed", "rows"),
    [
        (delete_from("", None), 0, _FILES, len(ORDERS.rows)),
        (delete_from("", "p = 'a'"), 0, 3, 30),
        (delete_from("", "p IN (SELECT p FROM s)", "VALUES ('a'), ('x') AS s(p)"), 0, 3, 30),
        (delete_from("", "p IS NULL OR id < 110"), 0, 2, 15),
        (delete_from("", "id BETWEEN 100 AND 205"), 1, 4, 36),
        (delete_from("", "p = 'a' AND n = 1"), 3, 3, 3),
        (delete_from("", "id = 110"), 0, 0, 0),
        (delete_from("", "1 = 2"), 0, 0, 0),
        (delete_from("", "EXISTS (SELECT * FROM s WHERE id > 7)"), 0, 0, 0),
        (delete_from("", "EXISTS (SELECT * FROM s)"), 0, _FILES, len(ORDERS.rows)),
        (update_set("", {"n": "1"}, "p = 'a' AND id > 300"), 1, 1, 9),
        (update_set("", {"n": "1"}, "id > 999"), 0, 0, 0),
    ],
)
def test_files_that_are_read(
    statement: Behaviour,
    scanned: int,
    removed: int,
    rows: int,
    connector: str,
    make_table: Callable[..., Harness],
) -> None:
    metrics = run(statement, make_table(connector, ORDERS, partitioned=True))

    found = (metrics.files_scanned, metrics.files_removed, metrics.updated + metrics.deleted)
    assert found == (scanned, removed, rows)
    assert metrics.files_total == _FILES


@pytest.mark.slow
def test_a_delete_of_whole_files_needs_no_readable_file(
    make_table: Callable[..., Harness],
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    for path in harness.live_files():
        Path(path).write_bytes(b"damaged")

    # Without the sources of all behaviours: the target is one, and its files would be looked at.
    request = replace(request_of(delete_from("", "p < 'c' OR id >= 140"), harness), sources=())
    result = Job(request, harness.spark, harness.open()).run()

    assert result.error is None, result.error
    metrics = result.metrics
    assert (metrics.deleted, metrics.files_removed) == (len(ORDERS.rows), _FILES)
    assert harness.live_files() == []
