"""The versions that jobs warn beyond are those that pyproject.toml declares and tests run."""

from __future__ import annotations

import tomllib

import pytest

from spark_jobs.contract.tested_versions import RANGES, is_tested, range_of
from tests.architecture.layout import ROOT


def declared() -> dict[str, str]:
    """The requirements of a Spark environment, by the names of packages."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    texts = [each for name in ("executor", "spark") for each in groups[name]]
    found = {}
    for text in texts:
        if isinstance(text, str):
            name = text.partition("[")[0].partition("=")[0].rstrip("<>!")
            found[name] = text.partition("]")[2] or text.removeprefix(name)
    return found


@pytest.mark.parametrize("name", sorted(RANGES.keys() - {"pyspark"}))
def test_the_range_is_the_declared_one(name: str) -> None:
    assert range_of(name) == declared()[name]


def test_all_versions_of_spark_that_are_run_are_tested_ones() -> None:
    legs = tomllib.loads((ROOT / "requirements/compat/legs.toml").read_text())
    run = [text for leg in legs.values() for text in leg["replace"] if text.startswith("pyspark==")]
    versions = [text.removeprefix("pyspark==").replace("*", "0") for text in run]
    locked = declared()["pyspark"].removeprefix("==")

    assert [each for each in (*versions, locked) if not is_tested("pyspark", each)] == []


@pytest.mark.parametrize("found", ["26.0.1", "19.0.0", "17.0.0", "20.0.0rc1", "unknown"])
def test_another_version_is_not_tested(found: str) -> None:
    assert not is_tested("pyarrow", found)
    assert is_tested("pyarrow", "19.0.1")
