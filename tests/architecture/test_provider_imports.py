"""Importing the provider works in an Airflow environment that holds nothing of the Spark side."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

from tests.architecture.importing import failures_of_importing
from tests.architecture.layout import TABLE_LIBRARIES, modules

SPARK_SIDE = ("pyspark", "pyarrow", "pandas", *TABLE_LIBRARIES)
# What is built on Airflow's shared streams; before Airflow 3.3 nothing imports it.
OF_AIRFLOW_3_3 = {"airflow_provider_merge.triggers.stored_events"}


def test_every_module_imports_without_the_spark_side(tmp_path: Path) -> None:
    found = modules("airflow_provider_merge")
    assert set(found) > OF_AIRFLOW_3_3
    if version("apache-airflow").startswith("3.2."):
        found = [name for name in found if name not in OF_AIRFLOW_3_3]

    failures = failures_of_importing(
        found,
        blocked=SPARK_SIDE,
        # Airflow writes its configuration file when it is imported, and its server starts programs.
        preloaded=["airflow.sdk", "airflow.api_fastapi.core_api.security"],
        environment={**os.environ, "AIRFLOW_HOME": str(tmp_path)},
    )

    assert failures == {}, "import it inside the function that uses it"
