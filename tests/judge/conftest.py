import pytest

from tests.judge.rest_server import rest
from tests.judge.tables import Warehouse
from tests.judge.toolchain import JudgeMissingError, prepare

__all__ = ["rest"]


@pytest.fixture(scope="session")
def java():
    """Skips the tests that need the judge, with the reason, where it cannot run."""
    try:
        prepare()
    except JudgeMissingError as missing:
        pytest.skip(f"no Java judge: {missing}")


@pytest.fixture
def warehouse(tmp_path, java):
    return Warehouse(tmp_path / "warehouse")
