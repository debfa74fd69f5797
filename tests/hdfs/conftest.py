import pytest

from tests.judge.hdfs_server import hdfs

__all__ = ["hdfs"]

pytest.register_assert_rewrite("tests.conformance.check")
