"""Short races on Iceberg tables; `make test-races ICEBERG=1` runs long ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.judge.iceberg_server import IcebergRest
from tests.judge.iceberg_spark import JARS
from tests.judge.toolchain import JudgeMissingError, fetched_jar
from tests.races.iceberg_race import IcebergRace, shares

_SECONDS = 20.0
_LEAST_CONFLICTS = 0.2


@pytest.mark.parametrize(
    ("marks", "writers"),
    [
        # It has not shown yet that it needs no more than a run's time.
        pytest.param(
            True,
            ("ours", "ours", "pyiceberg", "spark"),
            id="merge-on-read",
            marks=pytest.mark.extended,
        ),
        # The same publish, and half a minute.
        pytest.param(
            False,
            ("ours", "ours", "pyiceberg", "spark"),
            id="copy-on-write",
            marks=pytest.mark.extended,
        ),
    ],
)
def test_writers_that_race_lose_and_double_nothing(
    tmp_path: Path,
    iceberg_rest: IcebergRest,
    marks: bool,
    writers: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        for jar in JARS:
            fetched_jar(jar)
    except JudgeMissingError as missing:
        pytest.skip(f"no Spark with Iceberg: {missing}")

    report = IcebergRace(iceberg_rest, tmp_path, writers, marks=marks, partitions=2).run(_SECONDS)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert report.problems == []
    assert report.conflict_share >= _LEAST_CONFLICTS
    assert set(shares(report)) == set(writers)
    assert report.compared > 0
    assert set(report.failures) <= {"COMMIT_CONFLICT"}
