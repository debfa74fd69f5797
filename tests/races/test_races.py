"""Short races; ``make test-races`` runs long ones, on an object store too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spark_jobs.contract.request import CatalogSpec
from tests.judge.hdfs_server import Hdfs
from tests.judge.rest_server import RestCatalog
from tests.races.race import Race
from tests.support import append_checker, keyed_checker
from tests.support.keyed_checker import problems_of

_SECONDS = 20.0
_LEAST_CONFLICTS = 0.2


def _race(folder: Path, **chosen: object) -> Race:
    (folder / "warehouse").mkdir()
    return Race(CatalogSpec("paimon", str(folder / "warehouse")), folder, **chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "marks",
    [
        # The publish is the same; tables in HDFS and of the REST catalog are copy-on-write.
        pytest.param(False, id="copy-on-write", marks=pytest.mark.extended),
        pytest.param(True, id="deletion vectors"),
    ],
)
def test_writers_that_race_lose_and_double_nothing(
    tmp_path: Path, marks: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    report = _race(tmp_path, marks=marks).run(_SECONDS)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert report.problems == []
    assert report.conflict_share >= _LEAST_CONFLICTS
    assert {"merge", "delete", "append", "compact"} <= report.kinds.keys()
    assert report.compared > 0
    assert set(report.failures) <= {"COMMIT_CONFLICT"}


@pytest.mark.by_turns(2, 0)
@pytest.mark.parametrize(
    "marks",
    [
        pytest.param(False, id="appended records"),
        pytest.param(True, id="rewritten sections", marks=pytest.mark.extended),
    ],
)
def test_writers_that_race_on_one_bucket_lose_and_double_nothing(
    tmp_path: Path, marks: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    report = _race(tmp_path, has_key=True, marks=marks, partitions=1).run(_SECONDS / 2)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert report.problems == []
    assert problems_of(tmp_path / "warehouse" / "shop.db" / "orders") == []
    assert report.conflict_share >= _LEAST_CONFLICTS
    assert {"merge", "delete", "append", "compact"} <= report.kinds.keys()
    assert report.compared > 0
    assert set(report.failures) <= {"COMMIT_CONFLICT"}


@pytest.mark.parametrize(
    "has_key",
    [
        # One kind a run; `make test-races COMPACT=1` has all.
        pytest.param(False, id="deletion vectors", marks=pytest.mark.extended),
        pytest.param(True, id="one bucket"),
    ],
)
def test_a_compactor_beside_writers_of_this_project_and_of_java(
    tmp_path: Path, has_key: bool, java: None, capsys: pytest.CaptureFixture[str]
) -> None:
    race = _race(
        tmp_path,
        writers=2,
        compacts=True,
        java=True,
        has_key=has_key,
        marks=not has_key,
        partitions=1 if has_key else 4,
    )

    report = race.run(_SECONDS / 2)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    checker = keyed_checker if has_key else append_checker
    assert report.problems == []
    assert checker.problems_of(tmp_path / "warehouse" / "shop.db" / "orders") == []
    assert report.compacted > 0
    assert report.compared >= report.compacted
    assert set(report.failures) <= {"COMMIT_CONFLICT"}
    assert set(report.compactions) <= {"committed", "unchanged", "COMMIT_CONFLICT"}


@pytest.mark.by_turns(2, 1)
def test_writers_that_race_on_a_rest_catalog_lose_and_double_nothing(
    tmp_path: Path, rest: RestCatalog, capsys: pytest.CaptureFixture[str]
) -> None:
    race = Race(rest.spec(), tmp_path, rest.credentials, writers=5)

    report = race.run(_SECONDS / 2)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert report.problems == []
    assert report.conflict_share >= _LEAST_CONFLICTS
    assert report.compared > 0
    assert set(report.failures) <= {"COMMIT_CONFLICT"}


# tests/hdfs loses the answer to each request of a commit, the store above is as quick.
@pytest.mark.extended
def test_writers_that_race_in_hdfs_lose_and_double_nothing(
    tmp_path: Path, hdfs: Hdfs, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Race(hdfs.new_catalog(), tmp_path).run(_SECONDS)

    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert report.problems == []
    assert report.conflict_share >= _LEAST_CONFLICTS
    assert report.compared > 0
    assert set(report.failures) <= {"COMMIT_CONFLICT"}


def test_the_checker_sees_what_a_publish_that_is_not_atomic_loses(tmp_path: Path) -> None:
    report = _race(tmp_path, publish="check-then-write").run(_SECONDS / 2)

    assert any("reported snapshot" in each for each in report.problems)
