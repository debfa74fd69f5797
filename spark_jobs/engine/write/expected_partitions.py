"""The partitions that a statement may change or add, where somebody says which or how many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.options import MAX_NEW_PARTITIONS, JobOptions
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.contract.result import GuardReport, Metrics
from spark_jobs.contract.sql_text import sql_conditions
from spark_jobs.engine.analysis.partition_specs import Constants, PartitionSpecs, belongs
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi.tables import PlannedFile, TableHandle

_NAMED: Final = 10
_SHOWN = 3


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


def require_few_new(
    options: JobOptions, table: TableHandle, changed: Sequence[str], planned: Sequence[PlannedFile]
) -> None:
    """Check that few enough of the ``changed`` partitions are new beside the ``planned`` files.

    Partitions are given by their names. Each file whose partition is not known counts as one of the
    changed partitions.

    Raises:
        DataError: TOO_MANY_PARTITIONS.
    """
    limit = options.max_new_partitions or MAX_NEW_PARTITIONS
    if len(changed) <= limit:
        return
    columns = [each.name for each in table.partitioned_by]
    known, unknown = set(), 0
    for file in planned:
        if all(name in file.partition for name in columns):
            known.add(partition_name({name: file.partition[name] for name in columns}))
        else:
            unknown += 1
    new = [name for name in changed if name not in known]
    count = len(new) - unknown
    if count > limit:
        raise DataError(
            ErrorCode.TOO_MANY_PARTITIONS,
            f"The statement would add {count} partitions by {', '.join(columns)} to {table.name}, "
            f"more than the {limit} allowed, such as {', '.join(new[:_SHOWN])}.",
            "Check whether the table is partitioned by the right column. If they are meant, raise "
            "max_new_partitions of the operator, or [merge] max_new_partitions.",
        )
