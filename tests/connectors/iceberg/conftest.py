"""A catalog that Spark with Iceberg fills, and the connector on it."""

from __future__ import annotations

from tests.judge.iceberg_spark import iceberg_spark

__all__ = ["iceberg_spark"]
