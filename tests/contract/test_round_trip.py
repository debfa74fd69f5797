"""What is written is what is read, and what fits the contract fits the published schema."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from spark_jobs.contract import request, result
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import ErrorInfo, JobResult
from spark_jobs.contract.schema import schema_of
from spark_jobs.errors import ErrorCode, error_of
from tests.contract.strategies import requests, results

REQUEST_SCHEMA = Draft202012Validator(schema_of(JobRequest, request.VERSION))
RESULT_SCHEMA = Draft202012Validator(schema_of(JobResult, result.VERSION))


@given(requests())
def test_a_request_round_trips_exactly(original: JobRequest) -> None:
    text = original.to_json()
    text.encode()  # a file can hold it
    copy = JobRequest.from_json(text)
    assert copy == original
    assert copy.to_json() == text
    REQUEST_SCHEMA.validate(json.loads(text))


@given(results)
def test_a_result_round_trips_exactly(original: JobResult) -> None:
    text = original.to_json()
    text.encode()
    copy = JobResult.from_json(text)
    assert copy == original
    assert copy.to_json() == text
    RESULT_SCHEMA.validate(json.loads(text))


@given(requests(), st.randoms(use_true_random=False))
def test_the_order_of_keys_has_no_meaning(original: JobRequest, chance: random.Random) -> None:
    shuffled = _shuffled(json.loads(original.to_json()), chance)
    assert JobRequest.from_json(json.dumps(shuffled)) == original


def _shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, list):
        return [_shuffled(item, chance) for item in value]
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: _shuffled(value[key], chance) for key in keys}
    return value


@given(requests())
@settings(max_examples=30)
def test_a_document_without_optional_fields_means_their_defaults(original: JobRequest) -> None:
    defaults = JobRequest(
        original.operation_id,
        original.target,
        original.catalog,
        original.statement,
        original.sources,
    )
    document = json.loads(defaults.to_json())
    del document["options"], document["origin"]
    REQUEST_SCHEMA.validate(document)
    assert JobRequest.from_json(json.dumps(document)) == defaults


def test_whole_numbers_are_read_as_floats_where_floats_are_due() -> None:
    document = json.loads(JobResult("op", "committed", "db.t", "00").to_json())
    document["metrics"]["seconds"] = {"join": 3}
    seconds = JobResult.from_json(json.dumps(document)).metrics.seconds["join"]
    assert (seconds, type(seconds)) == (3.0, float)


def test_a_number_that_json_cannot_hold_is_not_written() -> None:
    metrics = result.Metrics(seconds={"join": float("nan")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        JobResult("op", "committed", "db.t", "00", metrics).to_json()


@pytest.mark.parametrize("code", ErrorCode)
def test_an_error_survives_as_data(code: ErrorCode) -> None:
    data = ErrorInfo.of(error_of(code, "a message", "a remedy"))
    assert data == ErrorInfo(code.name, "a message", "a remedy", code.retryable)
