"""Hypothesis without a stop-watch (machines are shared) and with the same examples on every run."""

from __future__ import annotations

import importlib.util

from hypothesis import settings

settings.register_profile("sql", deadline=None, derandomize=True, database=None)
settings.load_profile("sql")

# Airflow's environment has a package pyspark, but no Spark; random texts are tried there only.
collect_ignore = [
    "test_against_spark.py" if importlib.util.find_spec("airflow") else "test_fuzz.py",
]
