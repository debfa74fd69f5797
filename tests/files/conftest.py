from __future__ import annotations

from tests.spark_session import spark

__all__ = ["spark"]
