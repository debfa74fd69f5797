"""One error names every guard and every check that does not hold; rows are counted once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_jobs.contract.guards import Guards, Limit
from spark_jobs.contract.result import GuardReport, Metrics
from spark_jobs.engine.changes.row_checking import _Found
from spark_jobs.engine.write.guarding import CheckReports, Guarding
from spark_jobs.errors import DataError

_GUARDS = Guards(
    min_source_rows=Limit(share=0.1), max_deleted_rows=Limit(2), max_updated_rows=Limit(share=0.5)
)
_CHECKS = CheckReports(
    (GuardReport("few", "no rows", "3 rows", held=False),), ("check few: expected no rows",)
)


class _Scan:
    """Counts how often rows are counted."""

    calls = 0

    def count_rows(self, table: object, files: list[Any]) -> int:
        self.calls += 1
        return 10


def _guarding(scan: _Scan, *, reports_only: bool = False) -> Guarding:
    file: Any = SimpleNamespace(has_exact_count=False)
    table, opened = (SimpleNamespace(), scan)
    return Guarding(_GUARDS, table, opened, (file,), reports_only)  # type: ignore[arg-type]


def test_all_that_failed_is_named() -> None:
    guarding = _guarding(_Scan())
    with pytest.raises(DataError) as caught:
        guarding.before_publishing(Metrics(deleted=3, updated=6), _CHECKS)
    assert caught.value.code.name == "GUARD_FAILED"
    assert caught.value.name in ("max_deleted_rows", "max_updated_rows")
    *sentences, last = caught.value.problem.split("; ")
    assert sorted(sentences) == [
        "max_deleted_rows: 3, allowed at most 2",
        "max_updated_rows: 6, allowed at most 50 %",
    ]
    assert last == "check few: expected no rows. Nothing of it was published."


def test_a_dry_run_reports_all_of_them() -> None:
    metrics = _guarding(_Scan(), reports_only=True).before_publishing(Metrics(deleted=3), _CHECKS)
    told = {each.name: each.held for each in metrics.guards}
    assert told == {"max_deleted_rows": False, "max_updated_rows": True, "few": False}


def test_rows_of_the_table_are_counted_once() -> None:
    scan = _Scan()
    guarding = _guarding(scan)
    metrics = guarding.before_writing(Metrics(source_rows=5), ())
    guarding.before_publishing(metrics, CheckReports())
    assert scan.calls == 1


def test_rows_of_a_check_are_bounded() -> None:
    found = _Found(GuardReport("few", "no rows", "3 rows", held=False), "x" * 5_000)
    assert len(found.sentence(500)) < 600
    assert found.sentence(500).startswith("check few: expected no rows, found 3 rows; the first: x")
