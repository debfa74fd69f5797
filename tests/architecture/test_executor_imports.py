"""Executors have no table library: what is pickled to them imports none."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tests.architecture.importing import failures_of_importing
from tests.architecture.layout import (
    EXECUTOR_MODULES,
    TABLE_LIBRARIES,
    executor_modules,
    modules,
    source_of,
)


def test_every_executor_module_imports_without_a_table_library() -> None:
    failures = failures_of_importing(executor_modules(), blocked=[*TABLE_LIBRARIES, "airflow"])

    assert failures == {}, "import the library only in modules that the driver alone loads"


def test_modules_that_read_landed_files_import_no_library_for_one_format_only() -> None:
    found = modules("spark_jobs.landing")
    assert found

    blocked = [*TABLE_LIBRARIES, "airflow", "fastavro", "pandas", "pyspark"]
    assert failures_of_importing(found, blocked=blocked) == {}


def test_the_list_of_executor_modules_names_modules_that_exist() -> None:
    found = executor_modules()

    assert [p for p in EXECUTOR_MODULES if not any(fnmatchcase(m, p) for m in found)] == [], (
        "remove or rename them in EXECUTOR_MODULES of layout.py and in pyproject.toml"
    )


def test_every_package_initialiser_is_empty() -> None:
    # Unpickling a sink imports the initialisers of all packages above it.
    packages = [m for m in modules("spark_jobs") if source_of(m).name == "__init__.py"]

    assert [m for m in packages if source_of(m).read_text().strip()] == [], (
        "move the code into a module of the package"
    )


def test_importing_the_driver_side_starts_nothing() -> None:
    failures = failures_of_importing(modules("spark_jobs"), blocked=["airflow"])

    assert failures == {}, "do the work in a function that is called later"
