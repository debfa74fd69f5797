"""Java as a requirement of tests."""

from __future__ import annotations

import pytest

from tests.judge.toolchain import JudgeMissingError, prepare


def require_java() -> None:
    """Skip the test, with the reason, where the judge cannot run."""
    try:
        prepare()
    except JudgeMissingError as missing:
        pytest.skip(f"no Java judge: {missing}")
