"""A document whose structure is wrong anywhere is refused with the JSON path of the place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import ErrorCode, RequestError
from tests.contract.mutations import Mutation, mutations
from tests.contract.strategies import requests, results
from tests.contract.test_round_trip import REQUEST_SCHEMA, RESULT_SCHEMA
from tests.support.turns import examples

Contract = type[JobRequest] | type[JobResult]


@pytest.mark.slow
@given(requests())
@settings(max_examples=examples(12))
def test_every_broken_request_is_refused(original: JobRequest) -> None:
    for mutation in mutations(json.loads(original.to_json()), REQUEST_SCHEMA.schema):
        _assert_refused(JobRequest, REQUEST_SCHEMA, mutation)


@pytest.mark.slow
@given(results)
@settings(max_examples=examples(20))
def test_every_broken_result_is_refused(original: JobResult) -> None:
    for mutation in mutations(json.loads(original.to_json()), RESULT_SCHEMA.schema):
        _assert_refused(JobResult, RESULT_SCHEMA, mutation)


def _assert_refused(cls: Contract, schema: Draft202012Validator, mutation: Mutation) -> None:
    with pytest.raises(RequestError) as caught:
        cls.from_json(mutation.text)
    assert caught.value.message.startswith(f"{mutation.path}: "), (mutation, caught.value.message)
    if mutation.path == "$.version" and mutation.name == "integer instead":
        assert caught.value.code is ErrorCode.REQUEST_VERSION_UNKNOWN
    else:
        assert caught.value.code is ErrorCode.REQUEST_INVALID
    assert schema.is_valid(json.loads(mutation.text)) is mutation.fits_schema, mutation


def test_every_kind_of_mutation_occurs() -> None:
    found = {each.name for each in mutations(json.loads(_request_text()), REQUEST_SCHEMA.schema)}
    assert found >= {
        "missing field",
        "unknown field",
        "key twice",
        "boolean instead",
        "null instead",
        "string instead",
        "integer instead",
        "number instead",
        "array instead",
        "object instead",
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "$: not a JSON document"),
        ("{", "$: not a JSON document"),
        ("{} {}", "$: not a JSON document"),
        ("[" * 100_000, "$: not a JSON document"),
        ('{"version": 1, "operation_id": NaN}', "$: not a JSON document"),
        ('{"version": 1, "operation_id": -Infinity}', "$: not a JSON document"),
        ("[]", "$: expected an object, found an array"),
        ("null", "$: expected an object, found null"),
        ("{}", "$.version: missing"),
        ('{"version": 1, "version": 1}', "$.version: occurs more than once"),
        ('{"version": 2}', "$.version: 2 is not known here"),
        ('{"version": 0}', "$.version: 0 is not known here"),
        ('{"version": 1.0}', "$.version: expected an integer"),
        ('{"version": "1"}', "$.version: expected an integer"),
        ('{"version": true}', "$.version: expected an integer"),
        ('{"version": 1}', "$.operation_id: missing"),
    ],
)
def test_no_request_at_all(text: str, problem: str) -> None:
    with pytest.raises(RequestError) as caught:
        JobRequest.from_json(text)
    assert caught.value.message.startswith(problem)


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('"kind": "merge"', '"kind": ["merge"]', "$.statement.kind"),
        ('"kind": "merge"', '"kind": {"merge": 1}', "$.statement.kind"),
        ('"on": "t.id = s.id"', '"on": "\\ud800"', "$.statement.on"),
        ('"path": "/data"', '"path": "\\udfff/data"', "$.sources[0].path"),
        ('"try_number": 1', '"try_number": 1.0', "$.origin.try_number"),
        ('"schema_evolution": false', '"schema_evolution": 0', "$.statement.schema_evolution"),
        ('"when": "matched"', '"when": "MATCHED"', "$.statement.cases[0].when"),
        ('"kind": "delete"', '"kind": "drop"', "$.statement.cases[0].action.kind"),
        ('"kind": "delete"', '"kind": "insert_all"', "$.statement.cases[0]"),
    ],
)
def test_a_broken_detail_is_named(old: str, new: str, path: str) -> None:
    text = _request_text()
    assert text.count(old) == 1
    with pytest.raises(RequestError) as caught:
        JobRequest.from_json(text.replace(old, new))
    assert caught.value.message.startswith(f"{path}: ")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + "0" * 400])
def test_a_number_beyond_floats_is_refused(number: str) -> None:
    text = JobResult("op", "committed", "db.t", "00").to_json()
    with pytest.raises(RequestError) as caught:
        JobResult.from_json(text.replace('"seconds": {}', f'"seconds": {{"join": {number}}}'))
    assert caught.value.message == "$.metrics.seconds.join: the number is too large"


def _request_text() -> str:
    document = {
        "operation_id": "op",
        "target": {"database": "db", "table": "t"},
        "catalog": {"connector": "paimon", "warehouse": "/w"},
        "statement": {
            "kind": "merge",
            "source": "s",
            "on": "t.id = s.id",
            "cases": [{"when": "matched", "action": {"kind": "delete"}}],
            "target_alias": "t",
            "source_alias": "s",
            "schema_evolution": False,
        },
        "sources": [{"kind": "file", "name": "s", "path": "/data", "format": "parquet"}],
        "origin": {"try_number": 1},
        "version": 1,
    }
    text = json.dumps(document)
    JobRequest.from_json(text)
    return text
