"""A turn of the matrix: files of the writers in the locks, and of others if they are there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.turns import part
from tests.writers.matrix import (
    ELSEWHERE,
    KINDS,
    files_from_elsewhere,
    files_of,
    run_all,
    writers_here,
)

pytestmark = pytest.mark.slow

# How many of a writer's options a turn leaves out between two.
_EVERY = {"pyarrow": 97, "spark": 6, "duckdb": 5, "duckdb-v2": 5, "polars": 11}


@pytest.mark.by_turns(4)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}")
@pytest.mark.parametrize("writer", list(_EVERY))
def test_statements_on_files_of_a_writer(
    spark: SparkSession, tmp_path: Path, writer: str, kind: tuple[str, bool]
) -> None:
    (found,) = (each for each in writers_here(spark) if each.name == writer)
    every = _EVERY[writer]
    files = files_of(found, tmp_path / "files", every, part(every))
    assert not files.not_written
    assert files.files

    statements = ("UPDATE", "DELETE")
    lines = list(run_all(spark, files, tmp_path, [kind], statements))  # type: ignore[list-item]

    assert len(lines) == len(statements)


@pytest.mark.parametrize("writer", ELSEWHERE)
def test_statements_on_files_from_elsewhere(
    spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    try:
        files = files_from_elsewhere(writer, tmp_path / "files")
    except FileNotFoundError as missing:
        pytest.skip(str(missing))

    lines = list(run_all(spark, files, tmp_path, KINDS[:1]))

    assert lines
