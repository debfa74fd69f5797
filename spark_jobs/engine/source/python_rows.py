"""Functions of DAG authors as sources: the request has the code, this module runs it."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyspark.cloudpickle.cloudpickle import register_pickle_by_value
from pyspark.errors import PythonException
from pyspark.sql import DataFrame

from spark_jobs.contract.outside_sources import PythonSource
from spark_jobs.contract.source_names import called
from spark_jobs.contract.sources import Source
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.progress import log
from spark_jobs.engine.runtime.session import kept_settings
from spark_jobs.errors import (
    CatalogError,
    ErrorCode,
    InternalError,
    JobError,
    RequestError,
    excerpt,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN = 2_000


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a function of a source is told: the ``name`` of the source and its ``arguments``."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def python_rows(spark: SparkSession, source: PythonSource) -> DataFrame:
    """What the function of ``source`` returns.

    Raises:
        RequestError: REQUEST_INVALID: no function of that name and signature, or no DataFrame.
        CatalogError: LIBRARY_MISSING: it imports what is not there. SOURCE_UNREADABLE: it failed.
        InternalError: STORAGE_UNAVAILABLE: it failed with an OSError, such as a lost connection.
    """
    function = _function(source)
    context = SourceContext(source.name, dict(source.arguments))
    try:
        inspect.signature(function).bind(spark, context)
    except TypeError as error:
        problem = f"cannot be called with (spark, context): {error}"
        raise _invalid(source, problem, "Define it as def NAME(spark, context).") from None
    except ValueError:
        pass  # a builtin tells no signature
    try:
        with kept_settings(spark):
            rows = function(spark, context)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a function of others raises
        raise _failed(source, error) from None
    wrong = _wrong(spark, rows)
    if wrong is not None:
        problem = f"returned {wrong}"
        raise _invalid(source, problem, "Return a DataFrame of the session that it gets.")
    assert isinstance(rows, DataFrame)  # noqa: S101 - see above
    return rows


@contextmanager
def failing_finally(source: Source) -> Iterator[None]:
    """Within, what a function of ``source`` raises in a task is final, as in the driver.

    Raises:
        CatalogError: SOURCE_UNREADABLE: a Python function of a ``PythonSource`` raised.
    """
    try:
        yield
    except PythonException as error:
        failure = translated(error)
        if failure.code is not ErrorCode.SPARK_FAILED or not isinstance(source, PythonSource):
            raise
        raise CatalogError(
            ErrorCode.SOURCE_UNREADABLE,
            f"{called(source.name)}: a function of {source.function} raised: {failure.problem}",
            "See the trace in the log, and correct the function.",
        ) from None


def _wrong(spark: SparkSession, rows: object) -> str | None:
    """What a function returned, if it is no table of ``spark``."""
    if not isinstance(rows, DataFrame):
        return f"{type(rows).__name__}, not a DataFrame"
    if not rows.sparkSession._jsparkSession.equals(spark._jsparkSession):
        return "a DataFrame of another session"
    return "a stream" if rows.isStreaming else None


def _function(source: PythonSource) -> Callable[..., Any]:
    name = source.function.partition(":")[2]
    if source.code is None:
        raise _invalid(source, "the request does not have its code", "Put its code there.")
    try:
        function = getattr(_module(source, source.code), name, None)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
        raise _failed(source, error) from None
    if not callable(function):
        raise _invalid(source, "is not a function of its module", "Correct the name.")
    assert callable(function)  # noqa: S101
    result: Callable[..., Any] = function
    return result


def _module(source: PythonSource, code: str) -> ModuleType:
    """The module of ``code``; its functions reach executors by value."""
    digest = hashlib.sha256(code.encode()).hexdigest()[:16]
    path = source.function.partition(":")[0].replace(".", "_")
    name = f"merge_source_{path}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{path}.py")
        file.write_text(code, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None  # noqa: S101 - of a file with this ending
        assert spec.loader is not None  # noqa: S101
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


def _failed(source: PythonSource, error: Exception | SystemExit) -> JobError:
    """The error for what the code raised; its trace is in the job's log, without secrets."""
    where = f"{called(source.name)}: {source.function}"
    log.error("%s raised", where, exc_info=error)
    if isinstance(error, ModuleNotFoundError):
        return CatalogError(
            ErrorCode.LIBRARY_MISSING,
            f"{where} needs the Python module {error.name!r}, which the driver does not have.",
            "Install its package into the Spark environment, or put what it has into the module of "
            "the function: only that module travels with the job.",
        )
    text = excerpt(f"{type(error).__name__}: {error}", _SHOWN)
    if isinstance(error, OSError):
        return InternalError(
            ErrorCode.STORAGE_UNAVAILABLE, f"{where} raised {text}", "See the trace in the log."
        )
    return CatalogError(
        ErrorCode.SOURCE_UNREADABLE,
        f"{where} raised {text}",
        "See the trace in the log, and correct the function.",
    )


def _invalid(source: PythonSource, problem: str, remedy: str) -> RequestError:
    where = f"{called(source.name)}: {source.function}"
    return RequestError(ErrorCode.REQUEST_INVALID, f"{where} {problem}", remedy)
