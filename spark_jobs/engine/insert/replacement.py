"""Which partitions a statement replaces, and whether it may (rule 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    PartitionStatement,
    TruncateTableSpec,
)
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.contract.sql_literals import sql_conditions
from spark_jobs.engine.analysis.partition_specs import (
    Constants,
    PartitionSpecs,
    belongs,
    files_of,
    value_of,
)
from spark_jobs.errors import DataError, ErrorCode, NotSupportedError
from spark_jobs.spi.tables import PlannedFile, TableHandle

Partition = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Replacement:
    """What a statement replaces in ``table``.

    ``specs`` select the partitions that it may touch; an empty spec selects the whole table.
    ``dynamic``: it replaces only partitions that occur in the new rows. ``appends``: it replaces
    nothing. ``expected`` are the specs of the partitions that may change; None allows any.
    """

    table: TableHandle
    specs: tuple[Constants, ...]
    dynamic: bool = False
    appends: bool = False
    expected: tuple[Constants, ...] | None = None

    @classmethod
    def of(cls, spec: PartitionStatement, table: TableHandle, specs: PartitionSpecs) -> Replacement:
        """What ``spec`` replaces.

        Raises:
            AnalysisError, DataError: a partition spec that does not fit the table.
            NotSupportedError: mode dynamic on a table without partitions.
        """
        if isinstance(spec, DropPartitionsSpec):
            named = enumerate(spec.partitions)
            return cls(table, tuple(specs.constants(p, f"partitions[{i}]") for i, p in named))
        constants = specs.constants(spec.partition, "PARTITION")
        if isinstance(spec, TruncateTableSpec):
            return cls(table, (constants,))
        specs.require_keys(spec.partition_columns, "PARTITION")
        if isinstance(spec, InsertIntoSpec):
            return cls(table, (constants,), appends=True)
        if spec.mode == "dynamic" and not table.partitioned_by:
            raise NotSupportedError(
                f"mode dynamic replaces partitions, but {table.name} has none.",
                "Use mode table to replace all rows.",
            )
        # A full spec is one partition, which is replaced with or without new rows.
        dynamic = spec.mode == "dynamic" and len(constants) < len(table.partitioned_by)
        return cls(table, (constants,), dynamic, expected=_expected(spec, specs))

    def replaced(self, files: Sequence[PlannedFile], new: Sequence[Partition]) -> list[PlannedFile]:
        """The files that are removed when rows of the partitions ``new`` are added."""
        if self.appends:
            return []
        found = {file.ordinal: file for spec in self.specs for file in files_of(files, spec)}
        if not self.dynamic:
            return list(found.values())
        occurring = set(new)
        return [file for file in found.values() if self._key(file) in occurring]

    def check(self, replaced: Sequence[PlannedFile], new: Sequence[Partition]) -> None:
        """Refuse new rows outside the specs, and changes to partitions that are not expected.

        Raises:
            DataError: ROW_OUTSIDE_PARTITION, PARTITION_NOT_EXPECTED.
        """
        for partition in map(self._named, new):
            if not any(belongs(partition, spec) for spec in self.specs):
                wanted = {name: each.value for name, each in self.specs[0].items()}
                raise DataError(
                    ErrorCode.ROW_OUTSIDE_PARTITION,
                    f"The source has rows of the partition {sql_conditions(partition)}, outside of "
                    f"the partition {sql_conditions(wanted)} that the statement names.",
                    "Filter the source, or name the partition that is meant.",
                )
        if self.expected is None:
            return
        changing = dict.fromkeys([*new, *map(self._key, replaced)])
        for partition in map(self._named, changing):
            if not any(belongs(partition, spec) for spec in self.expected):
                raise DataError(
                    ErrorCode.PARTITION_NOT_EXPECTED,
                    f"The partition {sql_conditions(partition)} would change, but is not among "
                    "expected_partitions.",
                    "Check the source's rows, or add the partition.",
                )

    def require_found(self, files: Sequence[PlannedFile]) -> None:
        """Refuse a spec that matches no partition of the table.

        Raises:
            DataError: PARTITION_NOT_FOUND.
        """
        for spec in self.specs:
            if not files_of(files, spec):
                wanted = {name: each.value for name, each in spec.items()}
                raise DataError(
                    ErrorCode.PARTITION_NOT_FOUND,
                    f"{self.table.name} has no partition {sql_conditions(wanted)}.",
                    "Check the values, or say IF EXISTS (if_exists=True).",
                )

    def names(self, partitions: Sequence[Partition]) -> list[str]:
        """The names of ``partitions``."""
        return [partition_name(self._named(each)) for each in partitions]

    def _key(self, file: PlannedFile) -> Partition:
        return tuple(value_of(file.partition, each.name) for each in self.table.partitioned_by)

    def _named(self, partition: Partition) -> Mapping[str, Any]:
        names = [each.name for each in self.table.partitioned_by]
        return dict(zip(names, partition, strict=True))


def _expected(spec: InsertOverwriteSpec, specs: PartitionSpecs) -> tuple[Constants, ...] | None:
    if spec.expected_partitions is None:
        return None
    return tuple(
        specs.constants(each, f"expected_partitions[{index}]")
        for index, each in enumerate(spec.expected_partitions)
    )
