"""Five million rows of a database pass through a heap that does not hold a tenth of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.test_jdbc_source import JARS, LOGIN, Database, maria, postgres

__all__ = ["maria", "postgres"]

ROWS = 5_000_000
# Characters: the rows have more than 1 GB, and twice that in Java.
WIDTH = 220
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.parametrize("name", ["postgres", "maria"])
def test_many_rows_in_little_memory(request: pytest.FixtureRequest, name: str) -> None:
    database: Database = request.getfixturevalue(name)
    if name == "postgres":
        jar = "postgresql.jar"
        numbers = f"generate_series(1, {ROWS}) AS n(id)"
    else:
        jar = "mariadb-java-client.jar"
        numbers = f"(SELECT seq AS id FROM seq_1_to_{ROWS}) n"
    database.do(
        "CREATE TABLE many (id bigint, v varchar(300)); "
        f"INSERT INTO many SELECT id, repeat('x', {WIDTH}) FROM {numbers};"
    )
    arguments = [str(JARS / jar), database.url, json.dumps(LOGIN), "600m"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.jdbc_memory", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [
        *(ROWS, ROWS, ROWS * (ROWS + 1) // 2, WIDTH)
    ]
