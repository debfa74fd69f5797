"""Files that strangers' tools look for call commands that exist."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from tests.architecture.layout import PACKAGES, ROOT

yaml = pytest.importorskip("yaml", reason="only Airflow's environment has PyYAML")


def read(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_workflows_call_targets_of_make() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    steps = [
        step["run"].split()
        for job in read(".github/workflows/ci.yml")["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]

    assert {command for command, *_ in steps} == {"make"}
    assert {"lint", "docs", "test", "test-turn", "test-compat"} == {
        target for _, target, *_ in steps
    }
    assert {target for _, target, *_ in steps} <= targets


def test_hooks_before_a_commit_run_what_is_there() -> None:
    hooks = [hook for repo in read(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]

    assert [hook["entry"] for hook in hooks] == [".ci/lint"]
    assert all(os.access(ROOT / hook["entry"], os.X_OK) for hook in hooks)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_that_they_are_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
