"""The partitions that a statement may change, where somebody says which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.contract.result import GuardReport, Metrics
from spark_jobs.contract.sql_literals import sql_conditions
from spark_jobs.engine.analysis.partition_specs import Constants, PartitionSpecs, belongs
from spark_jobs.errors import DataError, ErrorCode

_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class ExpectedPartitions:
    """The ``specs`` of the partitions that may change; None: all may.

    ``keeps``: a change elsewhere is reported, and no error; ``sets_aside``: source rows of others
    are no part of the statement.
    """

    specs: tuple[Constants, ...] | None
    keeps: bool
    sets_aside: bool = False

    @classmethod
    def of(cls, guards: Guards, specs: PartitionSpecs) -> ExpectedPartitions:
        """Those of ``guards``, evaluated; raises as ``PartitionSpecs.constants``."""
        if guards.expected_partitions is None:
            return cls(None, keeps=True)
        found = (
            specs.constants(each, f"expected_partitions[{index}]")
            for index, each in enumerate(guards.expected_partitions)
        )
        outside = guards.outside_partitions
        return cls(tuple(found), outside == "keep", outside == "quarantine")

    def checked(
        self, changed: Iterable[Mapping[str, Any]], metrics: Metrics, *, reports_only: bool
    ) -> Metrics:
        """``metrics`` with what is outside, of the partitions that change, as values by field.

        ``reports_only``: it is no error, as in a dry run.

        Raises:
            DataError: PARTITION_NOT_EXPECTED.
        """
        if self.specs is None:
            return metrics
        outside = [e for e in changed if not any(belongs(e, spec) for spec in self.specs)]
        held = self.keeps or not outside
        if not held and not reports_only:
            raise not_expected(outside[0])
        names = sorted({partition_name(each) for each in outside})
        more = f" and {len(names) - _NAMED} others" if len(names) > _NAMED else ""
        seen = f"outside: {', '.join(names[:_NAMED])}{more}" if names else "none outside"
        report = GuardReport("expected_partitions", f"{len(self.specs)} expected", seen, held)
        return replace(metrics, guards=(*metrics.guards, report))


def not_expected(partition: Mapping[str, Any]) -> DataError:
    """The error for a partition that would change, and must not."""
    return DataError(
        ErrorCode.PARTITION_NOT_EXPECTED,
        f"The partition {sql_conditions(partition)} would change, but is not among "
        "expected_partitions.",
        "Check the source's rows, or add the partition.",
    )
