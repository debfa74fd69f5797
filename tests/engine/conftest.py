from __future__ import annotations

from tests.conformance.conftest import make_table, seeds
from tests.support.spark_session import spark

__all__ = ["make_table", "seeds", "spark"]
