"""Leaves out what the other environment tests: the provider needs Airflow, executors must not.

What only reads files is tested once, beside Airflow.
"""

from __future__ import annotations

from importlib.util import find_spec

_READ_FILES = [
    "test_arrow_tasks.py",
    "test_circles.py",
    "test_format_names.py",
    "test_named_files.py",
    "test_neutral_rooms.py",
    "test_no_code_from_data.py",
    "test_remedies.py",
    "test_suites.py",
    "test_turns.py",
]
collect_ignore = (
    ["test_executor_imports.py"]
    if find_spec("airflow")
    else ["test_provider_imports.py", *_READ_FILES]
)
