"""Errors of operators and sensors: which task they are of, and how they look in its log."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_merge.exceptions import airflow_exception
from spark_jobs.contract.result import ErrorInfo
from spark_jobs.errors import ErrorCode, JobError, error_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_merge.task_failures import TaskFailure


class NamesItsTask:
    """A mixin for operators: errors in their constructors, which are import errors, name the task.

    A DAG file has many tasks, and an import error shows no line of it.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = _naming(cls.__init__)  # type: ignore[method-assign]


@contextmanager
def naming_task(task_id: str) -> Iterator[None]:
    """Put the task in front of the places of errors, once."""
    try:
        yield
    except JobError as error:
        places = (place_of_task(task_id), *without_task(error, task_id))
        raise error_of(error.code, error.problem, error.remedy, places, error.name) from None


def place_of_task(task_id: str) -> str:
    """What ``naming_task`` puts in front of an error's places."""
    return f"task {task_id!r}"


def without_task(error: JobError, task_id: str) -> tuple[str, ...]:
    """The places of an error within the task."""
    named = error.places[:1] == (place_of_task(task_id),)
    return error.places[1:] if named else error.places


def task_failure(
    error: JobError | ErrorInfo, context: Context, file: str = "", table: str = ""
) -> TaskFailure:
    """The exception that ends a task; it names the task and the ``file`` of its statement."""
    task = task_place(context)
    if isinstance(error, JobError):
        error = _with_origin(error)
    return airflow_exception(error, f"{task}, file {file}" if file else task, table)


def task_place(context: Context) -> str:
    """What errors call the task."""
    ti = context["ti"]
    index = f"[{ti.map_index}]" if (ti.map_index or -1) >= 0 else ""
    return f"task {ti.dag_id}.{ti.task_id}{index}"


def _with_origin(error: JobError) -> JobError:
    """The error with where a value may come from in a task, if no remedy says more."""
    if error.remedy or error.code not in (ErrorCode.REQUEST_INVALID, ErrorCode.SYNTAX_ERROR):
        return error
    remedy = "Correct it where its value comes from: the DAG file, another task, or the run."
    return error_of(error.code, error.problem, remedy, error.places, error.name)


def _naming(constructor: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(constructor)
    def named(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            constructor(self, *args, **kwargs)
        except JobError:
            task_id = getattr(self, "task_id", kwargs.get("task_id"))
            if task_id is None:
                raise
            try:
                with naming_task(task_id):
                    raise
            except JobError as named_error:
                # An instance of a mapped task is made when it runs: no retry makes it right.
                if getattr(self, "_BaseOperator__from_mapped", False):
                    raise airflow_exception(_with_origin(named_error)) from None
                raise

    return named
