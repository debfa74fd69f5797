from __future__ import annotations

from tests.judge.conftest import java
from tests.judge.hdfs_server import hdfs
from tests.judge.iceberg_server import iceberg_rest
from tests.judge.rest_server import rest

__all__ = ["hdfs", "iceberg_rest", "java", "rest"]
