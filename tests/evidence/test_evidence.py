"""Conditions mean the same on files as on rows: a turn of ``make test-evidence``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from tests.evidence.columns import COLUMNS
from tests.evidence.differential import SOURCES, Tally, compare, expected, readers
from tests.evidence.layouts import all_rows
from tests.evidence.predicates import predicates
from tests.evidence.statements import CORE, STATEMENT_TABLES, run_statements
from tests.evidence.tables import TABLES
from tests.support.turns import part

_PARTS: Final = 240


def _chosen(kinds: tuple[str, ...]) -> str:
    return kinds[part(_PARTS) // 2 % len(kinds)]


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", [_chosen(TABLES), _chosen(SOURCES)])
def test_conditions_by_every_reader(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    conditions = list(dict.fromkeys([*CORE, *predicates()[part(_PARTS) :: _PARTS]]))
    tally = Tally()

    with fixed_settings(spark, meaningful_settings("Europe/Berlin")):
        found = readers(spark, kind, tmp_path / kind)
        compare(kind, found, expected(spark, conditions), tally)

    assert tally.failures == []
    # Of ORC files, conditions about times are left out.
    assert tally.combinations >= len(found) * len(all_rows()) * len(conditions) // 2


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", [_chosen(STATEMENT_TABLES)])
def test_whole_statements(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    conditions, columns = CORE[part(_PARTS) % 5 :: 5], COLUMNS[part(_PARTS) % 7 :: 7]
    tally = Tally()

    run_statements(spark, kind, tmp_path / kind, tally, conditions, columns)

    assert tally.failures == []
    assert tally.statements >= len(conditions) + len(columns)
