"""The process that forks drivers; a table with two files; the table of kills at the end."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults.merges import Work, new_table
from tests.spark_session import spark

__all__ = ["spark"]

_ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Drivers:
    """Runs drivers in processes of their own."""

    process: subprocess.Popen[str]

    def do(self, what: str, warehouse: Path, *works: Work, **more: Any) -> Any:
        """Send a command to ``tests.faults.zygote``; its answer."""
        command = {"do": what, "warehouse": str(warehouse), "works": [*map(asdict, works)], **more}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="session")
def drivers() -> Iterator[Drivers]:
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.faults.zygote"],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Drivers(process)
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="session")
def _seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    seed = tmp_path_factory.mktemp("seed")
    new_table(seed)
    return seed


@pytest.fixture
def fresh(_seed: Path, tmp_path: Path) -> Iterator[Any]:
    """A function that puts a new copy of the table's warehouse at one and the same path."""
    warehouse = tmp_path / "warehouse"

    def make() -> Path:
        shutil.rmtree(warehouse, ignore_errors=True)
        shutil.copytree(_seed, warehouse)
        return warehouse

    return make
