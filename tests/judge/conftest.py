import pytest

from tests.judge.required import require_java
from tests.judge.rest_server import rest
from tests.judge.tables import Warehouse

__all__ = ["rest"]


@pytest.fixture(scope="session")
def java():
    """Skips the tests that need the judge, with the reason, where it cannot run."""
    require_java()


@pytest.fixture
def warehouse(tmp_path, java):
    return Warehouse(tmp_path / "warehouse")
