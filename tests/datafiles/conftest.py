from __future__ import annotations

from tests.support.spark_session import spark

__all__ = ["spark"]
