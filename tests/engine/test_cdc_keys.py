"""Keys and sequences of change events that the target stores otherwise than they are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.statements import ColumnSpec
from tests.conformance.paimon_harness import PaimonHarness
from tests.conformance.tables import SeedTable
from tests.engine.cdc_cases import SOURCE, events_of, rows_of, run
from tests.support.table_kinds import APPEND_DV

pytestmark = pytest.mark.slow


def _made(
    spark: SparkSession, folder: Path, key: str, sequence: str = "BIGINT", **more: str
) -> PaimonHarness:
    folder.mkdir()
    harness = PaimonHarness(spark, folder, partitioned=False, kind=APPEND_DV)
    columns = {"id": key, "v": "STRING", "lsn": sequence, **more}
    harness.create(SeedTable("keys", tuple(ColumnSpec(*each) for each in columns.items())))
    return harness


@pytest.mark.parametrize(
    ("kind", "first", "other", "kept"),
    [
        ("BIGINT", "'1'", "'01'", 1),
        ("CHAR(3)", "'a'", "'a '", "a  "),
        ("VARCHAR(3)", "'abc'", "'abc '", "abc"),
    ],
)
def test_keys_that_the_target_stores_as_one_are_one(
    spark: SparkSession, tmp_path: Path, kind: str, first: str, other: str, kept: object
) -> None:
    harness = _made(spark, tmp_path / "w", kind)
    both = events_of(f"('c', {first}, 'old', 1L)", f"('u', {other}, 'new', 2L)")
    again = events_of(f"('u', {first}, 'newest', 3L)")

    assert run(harness, SOURCE, both).error is None
    assert rows_of(harness) == [(kept, "new", 2)]
    assert run(harness, SOURCE, again, operation_id="again").error is None
    assert rows_of(harness) == [(kept, "newest", 3)]


def test_what_the_target_would_round_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    failing = [
        ("BIGINT", "BIGINT", "('c', 1.4D, 'v', 1L)", "keys: id is of the type double in events"),
        ("DECIMAL(9,2)", "BIGINT", "('c', 1.001, 'v', 1L)", "keys: id is of the type decimal(4,3)"),
        ("BIGINT", "DOUBLE", "('c', 1L, 'v', 9007199254740993L)", "lsn is of the type bigint"),
        ("BIGINT", "FLOAT", "('c', 1L, 'v', 1D)", "lsn is of the type double in events"),
        ("BIGINT", "DECIMAL(9,1)", "('c', 1L, 'v', 1.19)", "lsn is of the type decimal(3,2)"),
    ]
    for number, (key, sequence, row, message) in enumerate(failing):
        harness = _made(spark, tmp_path / f"w{number}", key, sequence)
        result = run(harness, SOURCE, events_of(row))
        assert result.error is not None
        assert (result.error.code, message in result.error.message) == ("TYPE_MISMATCH", True)
        assert rows_of(harness) == []


def test_a_column_by_a_name_of_events_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    harness = _made(spark, tmp_path / "w", "BIGINT", _change_type="STRING")
    result = run(harness, SOURCE, events_of("('c', 1L, 'v', 1L)"))
    assert result.error is not None
    assert (result.error.code, "_change_type" in result.error.message) == ("NOT_SUPPORTED", True)
    assert rows_of(harness) == []
