"""What checks of rows see of a statement, before it is published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from unittest import mock

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.result import GuardReport
from spark_jobs.contract.row_checks import CHANGES, NEW_ROWS, TARGET, RowCheck
from spark_jobs.engine.changes.row_checking import RowChecking

Row = dict[str, Any]

# Checks that read everything, so that nothing is left out, and hold.
READING_ALL: Final = Guards(
    checks=(
        RowCheck("all changes", f"SELECT * FROM {CHANGES} WHERE operation IS NULL"),
        RowCheck("all new rows", f"SELECT * FROM {NEW_ROWS} LIMIT 0"),
        RowCheck("the table", f"SELECT * FROM {TARGET} LIMIT 0"),
    )
)


@dataclass
class Seen:
    """The rows that the checks of the last statement have seen, by the name that checks use."""

    views: dict[str, list[Row]] = field(default_factory=dict)


@contextmanager
def seen_by_checks() -> Iterator[Seen]:
    """Notes what the statements of the block show to their checks."""
    seen, evaluated = Seen(), RowChecking._evaluated

    def noted(checking: RowChecking, check: RowCheck) -> GuardReport:
        if check == checking.checks[0]:
            names = [CHANGES, NEW_ROWS, *([TARGET] if checking.reads.target else [])]
            tables = {name: checking.spark.table(name).collect() for name in names}
            seen.views = {n: [row.asDict(recursive=True) for row in t] for n, t in tables.items()}
        return evaluated(checking, check)

    with mock.patch.object(RowChecking, "_evaluated", noted):
        yield seen
