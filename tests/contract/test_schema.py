"""The published schema files are the generated ones, valid, and as strict as the codec."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.schema import main, published
from tests.contract.test_round_trip import REQUEST_SCHEMA, RESULT_SCHEMA

DOCS = Path(__file__).parents[2] / "docs"


def test_the_published_files_are_up_to_date(tmp_path: Path) -> None:
    main(str(tmp_path))
    generated = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    files = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "contract").iterdir()}
    assert files == generated, "run: python -m spark_jobs.contract.schema docs/contract"
    assert sorted(generated) == [
        f"job_{document}.v1.schema.json" for document in ("batch", "request", "result")
    ]


@pytest.mark.parametrize("text", published().values(), ids=published())
def test_a_published_file_is_a_strict_schema(text: str) -> None:
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    objects = [each for each in _walk(schema) if each.get("type") == "object"]
    assert all("additionalProperties" in each for each in objects)
    assert all(each["additionalProperties"] is False for each in objects if "properties" in each)
    used = set(re.findall(r'"#/\$defs/(\w+)"', text))
    assert used == set(schema["$defs"])


def _walk(schema: Any) -> list[dict[str, Any]]:
    children = schema.values() if isinstance(schema, dict) else schema
    below = [each for child in children if isinstance(child, dict | list) for each in _walk(child)]
    return [schema, *below] if isinstance(schema, dict) else below


def test_unions_are_told_apart_by_kind() -> None:
    schema = REQUEST_SCHEMA.schema
    members = schema["$defs"]["MergeCase"]["properties"]["action"]["oneOf"]
    kinds = [
        schema["$defs"][member["$ref"].rpartition("/")[2]]["properties"]["kind"]["const"]
        for member in members
    ]
    assert kinds == ["update", "update_all", "delete", "insert", "insert_all"]


def test_defaults_are_published() -> None:
    defaults = {
        name: field.get("default", "none")
        for name, field in REQUEST_SCHEMA.schema["$defs"]["MergeSpec"]["properties"].items()
    }
    assert defaults["cardinality"] == "effective"
    assert defaults["schema_evolution"] is False
    assert defaults["on"] == "none"


@pytest.mark.parametrize(
    ("cls", "schema"), [(JobRequest, REQUEST_SCHEMA), (JobResult, RESULT_SCHEMA)]
)
def test_the_examples_of_the_page_are_valid(cls: Any, schema: Draft202012Validator) -> None:
    page = (DOCS / "contract.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"<!-- {cls.__name__} -->\n```json\n(.*?)```", page, re.DOTALL)
    assert blocks
    for block in blocks:
        schema.validate(json.loads(block))
        cls.from_json(block)
