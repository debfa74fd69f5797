"""The one Spark session of a test run: small, local, in UTC.

``tests/conftest.py`` gives it to all suites; a program takes ``local_session``. PySpark is imported
only when somebody asks for the session.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["local_session", "spark"]

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark for all tests of a run."""
    with local_session(tmp_path_factory.mktemp("spark-warehouse")) as session:
        yield session


@contextmanager
def local_session(warehouse: Path, shuffle_partitions: int = 4) -> Iterator[SparkSession]:
    """Spark on two local threads, whose Python workers can import this project."""
    from pyspark.sql import SparkSession

    from spark_jobs.engine.runtime.java_names import remember_java_names

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        # Thousands of small plans: compiling them well costs more than it gains.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": str(_ROOT),
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # as in spark_jobs.command
        "spark.python.daemon.module": "spark_jobs.worker_daemon",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.sql.warehouse.dir": str(warehouse),
    }
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    remember_java_names(session)
    session.sparkContext.setLogLevel("OFF")
    # They repeat every error of an expression with the whole JVM trace.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).disabled = True
    try:
        yield session
    finally:
        session.stop()
