"""Tables of behaviours, each made once for a module's tests; every test takes a copy."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.behaviour import Behaviour
from tests.conformance.paimon_harness import PaimonHarness
from tests.support.table_kinds import TableKind


@dataclass(frozen=True)
class Seeds:
    """Warehouses with one table, by the table and its kind."""

    spark: SparkSession
    folders: pytest.TempPathFactory
    made: dict[tuple[str, str], Path] = field(default_factory=dict)

    def copy(self, behaviour: Behaviour, kind: TableKind, warehouse: Path) -> None:
        """Make ``warehouse`` one that has the behaviour's table, in partitions."""
        key = (behaviour.table.name, kind.name)
        if key not in self.made:
            self.made[key] = self.folders.mktemp("seed")
            harness = PaimonHarness(self.spark, self.made[key], partitioned=True, kind=kind)
            harness.create(behaviour.table)
        shutil.copytree(self.made[key], warehouse)
