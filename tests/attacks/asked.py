"""A query as its operator asks for it."""

from __future__ import annotations

from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource
from spark_jobs.contract.text_limits import TextLimits


def asked(lake: CatalogSpec, query: str, limits: TextLimits | None = None) -> JobRequest:
    """The request for the rows of a query."""
    sources = (SqlSource("q", query),)
    return JobRequest(
        "query", None, lake, QuerySpec("q"), sources, text_limits=limits or TextLimits()
    )
