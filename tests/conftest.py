"""What every suite has: the one Spark session of its process, and lists that are taken by turns."""

from __future__ import annotations

import pytest

from tests.support.spark_session import spark
from tests.support.turns import leave_out_others

__all__ = ["spark"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_out_others(config, items)
