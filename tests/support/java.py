"""A Java for the Spark of tests, where the machine has none (``make setup``)."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from airflow_provider_merge.submit.java import java_variables
from airflow_provider_merge.submit.spark_environment import SparkEnvironment


def needed_for_java(variables: Mapping[str, str]) -> dict[str, str]:
    """What a process with these variables needs besides, to start this environment's Spark."""
    return java_variables(SparkEnvironment.at(sys.prefix, "the tests' environment"), variables)
