"""Which partitions a compaction looks at."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.contract.partition_names import partition_key
from spark_jobs.contract.sql_literals import sql_conditions
from spark_jobs.engine.analysis.partition_specs import Constants, belongs


@dataclass(frozen=True, slots=True)
class WantedPartitions:
    """Implements ``WantedPartition``: the partitions of ``specs``; without any, all.

    ``matched`` collects the indexes of the specs that a partition belongs to.
    """

    specs: Sequence[Constants]
    matched: set[int] = field(default_factory=set)

    def __call__(self, partition: Mapping[str, Any]) -> bool:
        """Whether a partition, as values by column, is to be compacted.

        Files that are in no partition of today have no values: no spec that names any has them.
        """
        matching_specs = [
            index
            for index, spec in enumerate(self.specs)
            if (partition or not spec) and belongs(partition, spec)
        ]
        self.matched.update(matching_specs)
        return bool(matching_specs) or not self.specs

    def warnings(self) -> list[str]:
        """The specs to which no partition belongs, for people."""
        return [
            f"partitions[{index}]: the table has no partition "
            f"{sql_conditions({name: each.value for name, each in spec.items()})}"
            for index, spec in enumerate(self.specs)
            if spec and index not in self.matched
        ]


@dataclass(frozen=True, slots=True)
class Restricted:
    """Implements ``WantedPartition``: those of ``real`` that are among ``keys``.

    ``excludes``: those that are not among them.
    """

    real: WantedPartitions
    keys: Collection[str]
    excludes: bool = False

    def __call__(self, partition: Mapping[str, Any]) -> bool:
        """Whether a partition, as values by column, is to be compacted."""
        is_wanted = self.real(partition)
        return is_wanted and (partition_key(partition) in self.keys) != self.excludes
