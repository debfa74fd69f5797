from tests.judge.conftest import java
from tests.judge.iceberg_spark import iceberg_spark

__all__ = ["iceberg_spark", "java"]
