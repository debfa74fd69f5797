"""What Airflow is told about this provider is complete and true."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import airflow
import jsonschema

from airflow_provider_merge.get_provider_info import get_provider_info
from airflow_provider_merge.hooks.paimon import PaimonHook

INFO = get_provider_info()
SCHEMA = Path(airflow.__file__).parent / "provider_info.schema.json"


def test_fits_airflows_schema():
    jsonschema.validate(INFO, json.loads(SCHEMA.read_text()))


def test_modules_exist_and_none_is_left_out():
    listed = {
        module
        for kind in ("operators", "hooks")
        for entry in INFO[kind]
        for module in entry["python-modules"]
    }
    for module in listed:
        importlib.import_module(module)
    assert listed >= {
        "airflow_provider_merge.operators.merge_into",
        "airflow_provider_merge.operators.create_table",
        "airflow_provider_merge.operators.delete_from",
        "airflow_provider_merge.operators.update",
    }


def test_connection_type_is_the_hooks():
    (entry,) = INFO["connection-types"]
    assert entry["connection-type"] == PaimonHook.conn_type
    assert entry["hook-name"] == PaimonHook.hook_name
    path, _, name = entry["hook-class-name"].rpartition(".")
    assert getattr(importlib.import_module(path), name) is PaimonHook


def test_every_form_field_is_a_json_schema():
    (entry,) = INFO["connection-types"]
    for field in entry["conn-fields"].values():
        jsonschema.Draft202012Validator.check_schema(field["schema"])
