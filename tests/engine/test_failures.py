"""Failures of Spark as errors of this project."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException

from spark_jobs.engine.runtime.failures import shortened, translated
from spark_jobs.errors import DataError, ErrorCode, NotSupportedError, to_marker

_EXECUTOR_TRACE = """An error occurred while calling o1.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: {message}
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:1)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: {message}
\t... 20 more
"""


def in_trace(message: str) -> Exception:
    return PySparkException(_EXECUTOR_TRACE.format(message=message))


def test_an_error_of_an_executor_comes_back_as_it_was() -> None:
    error = DataError(ErrorCode.NOT_NULL_VIOLATION, "column <a> is 'x'\n>>", "Do y.")

    back = translated(in_trace(f"RuntimeError: {to_marker(error)}"))

    assert type(back) is DataError
    assert (back.code, back.message, back.remedy) == (error.code, error.message, error.remedy)


def test_what_stopped_the_writer_of_temporary_files_is_told() -> None:
    cause = "java.lang.NumberFormatException: For input string: q"
    wrapped = (
        "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to "
        f"file:/lake/a b/_operations/x. SQLSTATE: 58030\n\tat org.apache.Writer\nCaused by: {cause}"
    )

    assert translated(in_trace(wrapped)).message == translated(in_trace(cause)).message


def test_an_error_of_this_project_stays_itself() -> None:
    error = NotSupportedError("no")

    assert translated(error) is error


@pytest.mark.parametrize("condition", ["DIVIDE_BY_ZERO", "CAST_INVALID_INPUT", "CAST_OVERFLOW"])
def test_expressions_that_fail_on_the_data(condition: str) -> None:
    error = translated(in_trace(f"ArithmeticException: [{condition}] The culprit. SQLSTATE: 1"))

    assert error.code is ErrorCode.EXPRESSION_FAILED
    assert f"[{condition}] The culprit." in error.message
    assert not error.retryable


@pytest.mark.parametrize(
    ("condition", "state"),
    [("SCALAR_SUBQUERY_TOO_MANY_ROWS", "21000"), ("INVALID_INDEX_OF_ZERO", "22003")],
)
def test_sql_states_of_data_are_final(condition: str, state: str) -> None:
    error = translated(in_trace(f"SparkRuntimeException: [{condition}] No. SQLSTATE: {state}"))

    assert error.code is ErrorCode.EXPRESSION_FAILED
    assert not error.retryable


def test_a_failure_of_the_cluster_can_be_retried_and_has_no_java_frames() -> None:
    error = translated(in_trace("ExecutorLostFailure: Container killed"))

    assert error.code is ErrorCode.SPARK_FAILED
    assert error.retryable
    assert "Container killed" in error.message
    assert "\tat " not in error.message


def test_a_statement_that_spark_refuses_is_final() -> None:
    error = translated(AnalysisException("[SOME_CONDITION] No.\nPlan:\n'Project"))

    assert error.code is ErrorCode.EXPRESSION_INVALID
    assert error.message == "[SOME_CONDITION] No."


def test_a_defect_names_the_exception() -> None:
    error = translated(KeyError("x"))

    assert error.code is ErrorCode.INTERNAL_ERROR
    assert error.message.startswith("KeyError")


def test_long_traces_keep_both_ends() -> None:
    lines = [f"line {number}" for number in range(100)]

    short = shortened("\n".join(lines)).splitlines()

    assert (short[0], short[-1]) == ("line 0", "line 99")
    assert len(short) <= 13


_LONG = 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "x" * _LONG,
        "a." * _LONG,
        "[A" * _LONG,
        "[" + "A" * _LONG,
        "[A_B]" * _LONG,
        "[A_B." * _LONG,
        "[TASK_WRITE_FAILED]" * (_LONG // 10),
        "[TASK_WRITE_FAILED]\nCaused by: " * (_LONG // 10),
        "corrupted file" * (_LONG // 10),
        " is not a Parquet file" * (_LONG // 10),
        "SQLSTATE: " * (_LONG // 10),
        "<<job-error " * (_LONG // 10),
        "<<job-error {>>" * (_LONG // 10),
        " " * _LONG,
        " \n" * _LONG,
        "  Suppressed: " + "x" * _LONG,
        "  ... " + "1" * _LONG,
    ],
    ids=lambda text: text[:20].strip() or "blanks",
)
def test_texts_of_rows_cost_little(text: str) -> None:
    """Each text is the worst for a search in errors; a search that is not linear never ends."""
    error = translated(in_trace(text))

    assert error.code in (ErrorCode.SPARK_FAILED, ErrorCode.DATA_FILE_UNREADABLE)
    assert len(error.message) < 30_000


def test_long_messages_keep_both_ends() -> None:
    error = DataError(ErrorCode.VALUE_NOT_STORABLE, f"first {'x' * _LONG} last")

    assert (error.message[:5], error.message[-4:]) == ("first", "last")
    assert len(error.message) <= 20_000


def test_a_state_behind_the_first_line_is_found() -> None:
    error = translated(in_trace("[DUPLICATED_MAP_KEY] Found 1.\nIf you want … SQLSTATE: 23505"))

    assert error.code is ErrorCode.EXPRESSION_FAILED
    assert "[DUPLICATED_MAP_KEY] Found 1." in error.message


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (
            "java.nio.file.AccessDeniedException: /lake/_operations/op-1-x/source-y/_temporary/0",
            ErrorCode.WORKSPACE_ACCESS_DENIED,
        ),
        (
            "java.io.FileNotFoundException: /lake/shop.db/t/bucket-0/a.parquet (Permission denied)",
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
        ),
        (
            "org.apache.hadoop.security.AccessControlException: Permission denied: user=a",
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
        ),
        (
            "java.nio.file.AccessDeniedException: /local/blockmgr-7/0c",
            ErrorCode.SPARK_FAILED,
        ),
        ("IllegalArgumentException: the row says Permission denied", ErrorCode.SPARK_FAILED),
    ],
)
def test_what_java_may_not_do_is_told_where_it_is_of_a_table_or_of_a_job(
    line: str, code: ErrorCode
) -> None:
    assert translated(in_trace(line)).code is code
