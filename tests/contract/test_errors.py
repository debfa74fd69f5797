"""Codes, classes, markers and pickles of the error tree."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs import errors
from spark_jobs.errors import (
    ErrorCode,
    JobError,
    NotSupportedError,
    RequestError,
    error_of,
    from_marker,
    to_marker,
)

CLASSES = [
    "RequestError", "AnalysisError", "NotSupportedError", "CatalogError", "DataError",
    "CommitError", "InternalError",
]  # fmt: skip
texts = st.text(max_size=40) | st.sampled_from(
    [">>", "<<job-error ", "<<job-error {}>>", '"}>>', "\\", "\n>>\n", "𝄞 >> \x00"]
)


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_has_a_class_of_the_drawn_tree(code: ErrorCode) -> None:
    error = error_of(code, "what", "how")
    assert type(error).__name__ in CLASSES
    assert type(error).__base__ is JobError
    assert (error.code, error.message, error.remedy) == (code, "what", "how")
    assert error.retryable is code.retryable
    assert code.value[0] == code.name


def test_every_class_is_drawn_and_has_a_code() -> None:
    defined = {cls.__name__ for cls in JobError.__subclasses__()}
    assert defined == set(CLASSES) == {type(error_of(code, "")).__name__ for code in ErrorCode}
    assert all(f"── {name} " in (errors.__doc__ or "") for name in CLASSES)


def test_what_can_pass_and_what_can_not() -> None:
    passing = {code.name for code in ErrorCode if code.retryable}
    assert passing == {
        "COMMIT_CONFLICT", "COMMIT_OUTCOME_UNKNOWN", "RUN_GIVEN_UP", "STORAGE_UNAVAILABLE",
        "SPARK_FAILED", "INTERNAL_ERROR", "SOURCE_NOT_FOUND", "TIME_LIMIT_REACHED",
    }  # fmt: skip


def test_the_text_names_code_message_and_remedy() -> None:
    assert str(error_of(ErrorCode.TABLE_NOT_FOUND, "no db.t", "Create it.")) == (
        "TABLE_NOT_FOUND: no db.t Remedy: Create it."
    )
    assert str(NotSupportedError("no ORC")) == "NOT_SUPPORTED: no ORC"


@pytest.mark.parametrize("code", ErrorCode)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_error_can_be_pickled(code: ErrorCode, protocol: int) -> None:
    original = error_of(code, "what >> é", "how")
    for twin in (pickle.loads(pickle.dumps(original, protocol)), copy.deepcopy(original)):
        assert type(twin) is type(original)
        assert (twin.code, twin.message, twin.remedy) == (code, "what >> é", "how")
        assert str(twin) == str(original)


@given(st.sampled_from(ErrorCode), texts, texts, texts, texts)
def test_a_marker_is_found_in_any_text(
    code: ErrorCode, message: str, remedy: str, before: str, after: str
) -> None:
    error = error_of(code, message, remedy)
    found = from_marker(f"{before}{to_marker(error)}{after}")
    assert found is not None
    assert type(found) is type(error)
    assert (found.code, found.message, found.remedy) == (code, message, remedy)


def test_a_marker_is_found_in_a_long_spark_failure() -> None:
    error = RequestError(ErrorCode.SYNTAX_ERROR, "clause 2: 'a >> b' <<job-error {}>>", "No >>.")
    trace = "\n".join(f"  File worker.py, line {n}, in f<<{n}>>" for n in range(3000))
    text = (
        "org.apache.spark.SparkException: [FAILED] Job aborted <<job-error ...\n"
        f'{trace}\n    raise JobError("<<job-error " + text + ">>")\nRuntimeError: '
        f"{to_marker(error)}\n\tat org.apache.spark.Foo.bar(Foo.scala:1)\n{trace}"
    )
    found = from_marker(text)
    assert found is not None
    assert found.args == error.args


def test_the_first_of_two_markers_counts() -> None:
    first, second = (error_of(ErrorCode.SPARK_FAILED, text) for text in ("first", "second"))
    found = from_marker(to_marker(first) + to_marker(second))
    assert found is not None
    assert found.message == "first"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a plain text",
        "<<job-error ",
        "<<job-error {}>>",
        "<<job-error []>>",
        "<<job-error 1>>",
        '<<job-error {"code": "NEVER_HEARD", "message": "", "remedy": ""}>>',
        to_marker(error_of(ErrorCode.SPARK_FAILED, "cut off"))[:-8],
    ],
)
def test_what_is_no_marker_is_no_error(text: str) -> None:
    assert from_marker(text) is None
