import pytest

from tests.judge.hdfs_server import hdfs
from tests.support.spark_session import spark

__all__ = ["hdfs", "spark"]

pytest.register_assert_rewrite("tests.conformance.check")
