"""Importing the provider works in an Airflow environment that holds nothing of the Spark side."""

from __future__ import annotations

import os
from pathlib import Path

from tests.architecture.importing import failures_of_importing
from tests.architecture.layout import TABLE_LIBRARIES, modules

SPARK_SIDE = ("pyspark", "pyarrow", "pandas", *TABLE_LIBRARIES)


def test_every_module_imports_without_the_spark_side(tmp_path: Path) -> None:
    found = modules("airflow_provider_merge")
    assert found

    failures = failures_of_importing(
        found,
        blocked=SPARK_SIDE,
        preloaded=["airflow.sdk"],  # Airflow writes its configuration file when it is imported
        environment={**os.environ, "AIRFLOW_HOME": str(tmp_path)},
    )

    assert failures == {}
