"""PySpark asks the JVM once what a name means."""

from __future__ import annotations

from typing import Any

import py4j.clientserver
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.engine.runtime.java_names import remember_java_names

_QUESTION = "r\n"


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the JVM is asked about names, as long as the test runs."""
    asked: list[str] = []
    send = py4j.clientserver.ClientServerConnection.send_command

    def noting(self: Any, command: str) -> Any:
        if command.startswith(_QUESTION):
            asked.append(command)
        return send(self, command)

    monkeypatch.setattr(py4j.clientserver.ClientServerConnection, "send_command", noting)
    return asked


def test_a_name_is_looked_up_once(spark: SparkSession, questions: list[str]) -> None:
    remember_java_names(spark)
    questions.clear()

    rows = spark.range(3).where(F.col("id") > F.lit(1)).select(F.expr("id + 1 AS id")).collect()

    assert [row["id"] for row in rows] == [3]
    assert not [each for each in questions if "functions" in each or "SparkSession" in each]
