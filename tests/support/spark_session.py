"""The one Spark session of a test run: small, local, in UTC.

``tests/conftest.py`` gives it to all suites; a program takes ``local_session``. PySpark is imported
only when somebody asks for the session.

Thousands of small statements take a fifth less time when Spark interprets their expressions instead
of compiling them, so it compiles them where any behaviour may run (``_COMPILED``), in jobs, and in
`make test-all`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.java import needed_for_java
from tests.support.turns import EVERYTHING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["INTERPRETED", "local_session", "spark"]

# Settings with which Spark compiles no expression.
INTERPRETED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_ROOT = Path(__file__).resolve().parents[2]
_COMPILED = [_ROOT / "tests" / folder for folder in ("conformance", "property", "object_store")]


@pytest.fixture(scope="session")
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """Spark for all tests of a run."""
    compiled = EVERYTHING or any(
        folder in item.path.parents for item in request.session.items for folder in _COMPILED
    )
    warehouse = tmp_path_factory.mktemp("spark-warehouse")
    with local_session(warehouse, interpreted=not compiled) as session:
        yield session


@contextmanager
def local_session(
    warehouse: Path, shuffle_partitions: int = 4, *, interpreted: bool = False
) -> Iterator[SparkSession]:
    """Spark on two local threads, whose Python workers can import this project."""
    from pyspark.sql import SparkSession

    from spark_jobs.engine.runtime.java_names import remember_java_names

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.update(needed_for_java(os.environ))
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
        **(INTERPRETED if interpreted else {}),
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
