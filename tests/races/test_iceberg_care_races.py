"""Short races of writers with the care of an Iceberg table.

`make test-races ICEBERG=1 CARE=1` runs long ones. A run takes one of the catalogs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judge.iceberg_server import IcebergRest
from tests.judge.iceberg_spark import JARS
from tests.judge.toolchain import JudgeMissingError, fetched_jar
from tests.races.iceberg_care_race import CareRace, ready
from tests.races.iceberg_race import Writers
from tests.races.iceberg_table import RaceCatalog
from tests.support.optional_packages import require_package

_SECONDS = 12.0


@pytest.fixture(params=["rest", "sql"])
def writers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Writers]:
    try:
        for jar in JARS:
            fetched_jar(jar)
    except JudgeMissingError as missing:
        pytest.skip(f"no Spark with Iceberg: {missing}")
    if request.param == "rest":
        server: IcebergRest = request.getfixturevalue("iceberg_rest")
        catalog = RaceCatalog.on_server(server)
    else:
        require_package("sqlalchemy")
        (tmp_path / "lake").mkdir()
        catalog = RaceCatalog.in_folder(tmp_path / "lake")
    with ready(catalog, tmp_path) as found:
        yield found


@pytest.mark.by_turns(4)
def test_care_beside_writers_loses_nothing(
    writers: Writers, capsys: pytest.CaptureFixture[str]
) -> None:
    report = CareRace(writers, marks=True, seed=3).run(_SECONDS)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert report.problems == []
    assert report.acts["snapshots expired"] > 0
    assert report.acts["compaction committed"] > 0
    assert report.refs > 0
    assert report.statements > report.failures.total()
