"""Tables in HDFS behave as those in a folder do: a statement of each kind.

Each runs on the kind of tables whose turn it is; ``make test-all`` runs all behaviours on all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.behaviour import Behaviour
from tests.conformance.behaviours import BEHAVIOURS
from tests.conformance.check import check
from tests.conformance.seeds import Seeds
from tests.hdfs.hdfs_harness import HdfsHarness
from tests.judge.hdfs_server import Hdfs
from tests.support.table_kinds import APPEND_COW, APPEND_DV, TableKind
from tests.support.turns import EVERYTHING, has_turn

KINDS = {kind.name: kind for kind in (APPEND_COW, APPEND_DV)}
NAMES = {
    "all kinds of clauses together",
    "delete: a condition on any column",
    "update: rows move to other partitions, new and old",
    "overwrite: dynamic replaces the partitions of the new rows",
}


def _cases() -> Iterator[object]:
    for number, behaviour in enumerate(BEHAVIOURS):
        for turn, (name, kind) in enumerate(KINDS.items()):
            chosen = behaviour.name in NAMES and has_turn(number + turn, len(KINDS))
            if EVERYTHING or chosen:
                yield pytest.param(behaviour, kind, id=f"{behaviour}-{name}")


@pytest.fixture(scope="module")
def seeds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    return Seeds(spark, tmp_path_factory)


def test_the_names_are_those_of_behaviours() -> None:
    assert {behaviour.name for behaviour in BEHAVIOURS} >= NAMES


@pytest.mark.parametrize(("behaviour", "kind"), list(_cases()))
def test_behaviour(
    behaviour: Behaviour,
    kind: TableKind,
    hdfs: Hdfs,
    spark: SparkSession,
    seeds: Seeds,
    tmp_path: Path,
) -> None:
    warehouse = tmp_path / "warehouse"
    seeds.copy(behaviour, kind, warehouse)

    check(behaviour, HdfsHarness(spark, warehouse, partitioned=True, kind=kind, hdfs=hdfs))
