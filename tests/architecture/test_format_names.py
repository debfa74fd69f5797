"""The provider names a table format only where a format is chosen, read or explained."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.architecture.layout import modules, source_of

FORMATS = ("paimon", "iceberg")
# The modules of one format, and what tells Airflow of the connection types.
MODULES_OF_A_FORMAT = (
    "airflow_provider_merge.get_provider_info",
    "airflow_provider_merge.hooks.connection_forms",
    "airflow_provider_merge.hooks.iceberg",
    "airflow_provider_merge.hooks.iceberg_connection",
    "airflow_provider_merge.hooks.paimon",
    "airflow_provider_merge.hooks.paimon_connection",
    "airflow_provider_merge.metadata.iceberg*",
    "airflow_provider_merge.metadata.paimon*",
    "airflow_provider_merge.sql.iceberg_procedures",
    "airflow_provider_merge.sql.paimon_procedures",
)
_CATALOG = ":param catalog_conn_id: connection to the catalog, for example of the type ``paimon``"
_DEFAULT = 'catalog_conn_id: str = "paimon_default",'
# Whole lines of other modules.
EXCEPTIONS: Mapping[str, tuple[str, ...]] = {
    # The default of an option.
    "airflow_provider_merge.undo.command": (
        'parser.add_argument("--conn", default="paimon_default", help="the catalog connection")',
    ),
    "airflow_provider_merge.file_check.command": (
        '"--conn", default="paimon_default", help="the catalog connection (%(default)s)"',
    ),
    # The scheme of assets before there was a second format.
    "airflow_provider_merge.assets": ('SCHEMES = (SCHEME, "paimon")',),
    # The registry of formats.
    "airflow_provider_merge.hooks.catalog": (
        "from airflow_provider_merge.hooks.iceberg import IcebergHook",
        "from airflow_provider_merge.hooks.paimon import PaimonHook",
        "**dict.fromkeys(IcebergHook.conn_types, IcebergHook),",
        "**dict.fromkeys(PaimonHook.conn_types, PaimonHook),",
    ),
    "airflow_provider_merge.operators._shared.spark_job": (_CATALOG, _DEFAULT),
    "airflow_provider_merge.operators.statements": (_CATALOG,),
    "airflow_provider_merge.sensors.base": (_CATALOG, _DEFAULT),
    # The registry of procedures.
    "airflow_provider_merge.sql.calls": (
        "from airflow_provider_merge.sql import iceberg_procedures, paimon_procedures",
        '_FORMATS: Final = {"system": "iceberg", "sys": "paimon"}',
        '"system": iceberg_procedures.PROCEDURES,',
        '"sys": paimon_procedures.PROCEDURES,',
    ),
    # The formats that CREATE TABLE names.
    "airflow_provider_merge.sql.create_table": (
        '_FORMATS: Final = ("iceberg", "paimon")',
        '_WITHOUT_TRANSFORMS: Final = ("paimon",)',
    ),
    # The name of stored state: with another one, watchers would start anew.
    "airflow_provider_merge.triggers.stored_events": (
        'return f"paimon-snapshot-{hashlib.sha256(text.encode()).hexdigest()[:16]}"',
    ),
    "airflow_provider_merge.triggers.table": (_CATALOG, _DEFAULT),
}
NEUTRAL_MODULES = [
    each
    for each in modules("airflow_provider_merge")
    if not any(fnmatchcase(each, pattern) for pattern in MODULES_OF_A_FORMAT)
]


def lines_that_name_a_format(source: Path) -> list[str]:
    lines = (line.strip() for line in source.read_text().splitlines())
    return [line for line in lines if any(name in line.lower() for name in FORMATS)]


@pytest.mark.parametrize("module", NEUTRAL_MODULES)
def test_no_format_is_named(module: str) -> None:
    found = tuple(lines_that_name_a_format(source_of(module)))

    assert found == EXCEPTIONS.get(module, ()), (
        "ask the hook or the TableReader, which know the format; EXCEPTIONS is for registries and "
        "defaults, and has whole lines"
    )


def test_exceptions_are_of_modules_that_are_there() -> None:
    assert EXCEPTIONS.keys() <= set(NEUTRAL_MODULES)


def test_a_line_that_names_a_format_is_found(tmp_path: Path) -> None:
    source = tmp_path / "sensor.py"
    source.write_text("import os\n    hook = PaimonHook()\n")

    assert lines_that_name_a_format(source) == ["hook = PaimonHook()"]


def test_kinds_of_commits_are_compared_only_in_modules_of_a_format() -> None:
    named = [module for module in NEUTRAL_MODULES if '"COMPACT"' in source_of(module).read_text()]

    assert named == [], "ask Snapshot.keeps_rows"


def test_the_modules_of_a_format_are_there() -> None:
    for pattern in MODULES_OF_A_FORMAT:
        assert any(fnmatchcase(each, pattern) for each in modules("airflow_provider_merge"))
