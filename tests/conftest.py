"""What every suite has: the one Spark session of its process."""

from __future__ import annotations

from tests.support.spark_session import spark

__all__ = ["spark"]
