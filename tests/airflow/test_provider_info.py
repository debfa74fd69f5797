"""What Airflow is told about this provider is complete and true."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from pathlib import Path
from typing import Any

import airflow
import jsonschema
import pytest
from airflow.providers.common.compat.sdk import BaseHook, BaseOperator, BaseSensorOperator
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_3_PLUS
from airflow.triggers.base import BaseTrigger

from airflow_provider_merge.get_provider_info import get_provider_info
from airflow_provider_merge.hooks.iceberg import IcebergHook
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.operators._shared.table_operator import TableOperator

INFO = get_provider_info()
SCHEMA = Path(airflow.__file__).parent / "provider_info.schema.json"


def test_fits_airflows_schema() -> None:
    jsonschema.validate(INFO, json.loads(SCHEMA.read_text()))


KINDS = {
    "operators": BaseOperator,
    "hooks": BaseHook,
    "sensors": BaseSensorOperator,
    "triggers": BaseTrigger,
}


@pytest.mark.skipif(not AIRFLOW_V_3_3_PLUS, reason="a module of triggers is Airflow 3.3's alone")
@pytest.mark.parametrize(("kind", "base"), KINDS.items(), ids=KINDS)
def test_modules_exist_and_none_is_left_out(
    kind: str, base: type[BaseOperator | BaseHook | BaseSensorOperator | BaseTrigger]
) -> None:
    (entry,) = INFO[kind]
    listed = entry["python-modules"]
    package = importlib.import_module(f"airflow_provider_merge.{kind}")
    modules = [each.name for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]
    found = {
        name
        for name in modules
        for _, value in inspect.getmembers(importlib.import_module(name), inspect.isclass)
        if value.__module__ == name and issubclass(value, base) and not inspect.isabstract(value)
    }
    assert sorted(listed) == sorted(found)


def test_everything_that_is_named_exists() -> None:
    (uris,) = INFO["asset-uris"]
    named = [uris[key] for key in ("handler", "factory", "to_openlineage_converter")]
    assert all(callable(imported(path)) for path in named)
    names = {each["integration-name"] for each in INFO["integrations"]}
    used = {entry["integration-name"] for kind in KINDS for entry in INFO[kind]}
    assert used == names


def test_every_link_of_an_operator_is_listed() -> None:
    listed = {imported(path) for path in INFO["extra-links"]}
    assert {type(link) for link in TableOperator.operator_extra_links} == listed


@pytest.mark.parametrize(
    ("entry", "hook"),
    list(zip(INFO["connection-types"], [PaimonHook, IcebergHook], strict=True)),
)
def test_a_connection_type_is_the_hooks(
    entry: dict[str, Any], hook: type[PaimonHook | IcebergHook]
) -> None:
    assert entry["connection-type"] == hook.conn_type
    assert entry["hook-name"] == hook.hook_name
    assert imported(entry["hook-class-name"]) is hook


def imported(path: str) -> object:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_every_form_field_is_a_json_schema() -> None:
    fields = [each for form in INFO["connection-types"] for each in form["conn-fields"].values()]
    for field in fields:
        jsonschema.Draft202012Validator.check_schema(field["schema"])
