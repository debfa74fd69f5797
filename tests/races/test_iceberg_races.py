"""Short races on Iceberg tables; `make test-races ICEBERG=1` runs long ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judge.iceberg_server import IcebergRest
from tests.judge.iceberg_spark import JARS
from tests.judge.toolchain import JudgeMissingError, fetched_jar
from tests.races.iceberg_race import WHO, WHO_3, IcebergRace, Writers, shares
from tests.races.iceberg_table import RaceCatalog

_SECONDS = 12.0
_LEAST_CONFLICTS = 0.2


@pytest.fixture(scope="module")
def writers(
    iceberg_rest: IcebergRest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Writers]:
    try:
        for jar in JARS:
            fetched_jar(jar)
    except JudgeMissingError as missing:
        pytest.skip(f"no Spark with Iceberg: {missing}")
    with Writers.ready(
        RaceCatalog.on_server(iceberg_rest), tmp_path_factory.mktemp("races")
    ) as ready:
        # The first statements of a process take several times as long as others.
        assert IcebergRace(ready, seed=1).run(3.0).problems == []
        yield ready


@pytest.mark.parametrize(
    "marks", [pytest.param(True, id="merge-on-read"), pytest.param(False, id="copy-on-write")]
)
def test_writers_that_race_lose_and_double_nothing(
    writers: Writers, marks: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    report = IcebergRace(writers, marks, partitions=1).run(_SECONDS)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert report.problems == []
    assert report.conflict_share >= _LEAST_CONFLICTS
    assert set(shares(report)) == set(WHO)
    assert report.compared > 0
    assert set(report.failures) <= {"COMMIT_CONFLICT"}


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("marks", [True, False])
def test_no_id_is_doubled(
    iceberg_rest: IcebergRest,
    tmp_path: Path,
    marks: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Writers.ready(RaceCatalog.on_server(iceberg_rest), tmp_path, who=WHO_3) as ready:
        report = IcebergRace(ready, marks, partitions=1, version=3).run(_SECONDS)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert report.problems == []
    assert set(report.failures) <= {"COMMIT_CONFLICT"}


def test_a_table_that_is_taken_away_from_its_writers(
    writers: Writers, capsys: pytest.CaptureFixture[str]
) -> None:
    report = IcebergRace(writers, marks=True, partitions=1, seed=2, disturbed=True).run(_SECONDS)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert report.problems == []
    assert report.disturbances.total() > 0
    assert report.statements > report.failures.total()
