"""The result that a job leaves as ``<warehouse>/_operations/<operation id>.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult


def result_location(request: JobRequest) -> str:
    """Path or URI of the request's result."""
    warehouse = request.catalog.warehouse.rstrip("/")
    return f"{warehouse}/_operations/{request.operation_id}.json"


def read_result(request: JobRequest, storage_options: Mapping[str, Any]) -> JobResult | None:
    """The result that is stored for the request; None where there is none.

    Raises:
        RequestError: the stored document can not be understood, or no file system of the
            warehouse's scheme is installed beside Airflow.
    """
    location = result_location(request)
    text = _read_local(location) if is_local(location) else _read_uri(location, storage_options)
    return None if text is None else JobResult.from_json(text)


def is_local(location: str) -> bool:
    """True for a plain path and for ``file:`` URIs."""
    return "://" not in location or location.startswith("file:")


def _read_local(location: str) -> str | None:
    path = unquote(urlsplit(location).path) if "://" in location else location
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _read_uri(location: str, storage_options: Mapping[str, Any]) -> str | None:
    import fsspec  # type: ignore[import-untyped]

    scheme = location.partition("://")[0]
    try:
        with fsspec.open(location, "rb", **storage_options) as file:
            return bytes(file.read()).decode("utf-8")
    except FileNotFoundError:
        return None
    except (ImportError, ValueError) as error:
        raise invalid(
            "warehouse",
            f"Airflow can not read {scheme}:// to learn the job's outcome: {error}",
            "Install the fsspec file system of that scheme (for s3: s3fs) beside Airflow.",
        ) from error
