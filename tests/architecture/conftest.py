"""Leaves out what the other environment tests: the provider needs Airflow, executors must not."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [
    "test_executor_imports.py" if find_spec("airflow") else "test_provider_imports.py",
]
