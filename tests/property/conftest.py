"""One session and one warehouse for all random statements; the census of the run at its end."""

from __future__ import annotations

import pytest

from tests.property.paimon_tables import Warehouse
from tests.property.runner import Runner

_RUNNERS = pytest.StashKey[list[Runner]]()


@pytest.fixture(scope="session")
def runner(request, spark, tmp_path_factory) -> Runner:
    folder = tmp_path_factory.mktemp("property") / "warehouse"
    folder.mkdir()
    runner = Runner(spark, Warehouse(folder))
    request.config.stash.setdefault(_RUNNERS, []).append(runner)
    return runner


def pytest_terminal_summary(terminalreporter, config) -> None:
    for runner in config.stash.get(_RUNNERS, []):
        terminalreporter.section("random statements")
        terminalreporter.write_line(str(runner.census))
