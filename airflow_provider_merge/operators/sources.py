"""What MERGE reads: files, a table of the catalog, or a query over named sources.

The functions give plain dicts, because Airflow renders and serialises only those; the same dicts
can be written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators.values import conf_text
from airflow_provider_merge.secret_names import refuse_secrets
from airflow_provider_merge.sql.grammar import MERGE_SOURCE
from airflow_provider_merge.table_names import parse_table_name
from spark_jobs.contract import codec
from spark_jobs.contract.request import FileSource, Source, SqlSource, TableSource

_KINDS = {"file": FileSource, "sql": SqlSource}


def file_source(
    path: str,
    format: str,  # noqa: A002  # as Spark calls it
    *,
    options: Mapping[str, Any] | None = None,
    schema: str | None = None,
) -> dict[str, Any]:
    """Files that Spark reads with ``spark.read.format(format).options(**options).load(path)``.

    ``schema`` is a Spark DDL string (``id BIGINT, name STRING``).
    """
    return {
        "kind": "file",
        "path": path,
        "format": format,
        "options": _plain(options or {}),
        "schema": schema,
    }


def table_source(table: str) -> dict[str, Any]:
    """A table of the same catalog (``db.table``), at its latest snapshot."""
    return {"kind": "table", "table": table}


def sql_source(query: str, *, sources: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """A Spark SQL query; each key of ``sources`` is a name that the query may read."""
    return {"kind": "sql", "query": query, "sources": _plain(sources)}


def _plain(value: Any) -> Any:
    # What is no mapping comes from another task, or is refused with its name later.
    return dict(value) if isinstance(value, Mapping) else value


def to_sources(value: Any, field: str = "source", name: str = MERGE_SOURCE) -> tuple[Source, ...]:
    """The contract's sources behind a plain dict, in the order in which they build on each other.

    Raises:
        RequestError: REQUEST_INVALID, naming the place below ``field``.
    """
    if not isinstance(value, dict):
        raise invalid(
            field,
            f"expected a source, found {type(value).__name__}",
            "Use file_source(…), table_source(…) or sql_source(…).",
        )
    kind = value.get("kind")
    if kind == "table":
        return (_table(value, field, name),)
    if kind not in _KINDS:
        raise invalid(f"{field}.kind", f"{kind!r} is not one of: file, sql, table")
    document = {**value, "name": name}
    named = document.pop("sources", {}) if kind == "sql" else {}
    inner = to_named_sources(named, f"{field}.sources")
    if isinstance(document.get("options"), dict):
        document["options"] = {
            key: conf_text(each) if isinstance(each, bool | int | float) else each
            for key, each in document["options"].items()
        }
    source: Source = codec.decode(_KINDS[kind], document, field)
    _require_text(source, field)
    _require_no_secret(source, field)
    return (*inner, source)


def _table(value: dict[str, Any], field: str, name: str) -> TableSource:
    unknown = sorted(set(value) - {"kind", "table"})
    if unknown:
        raise invalid(f"{field}.{unknown[0]}", "unknown field", "Known: kind, table.")
    return TableSource(name, parse_table_name(value.get("table"), f"{field}.table"))


def to_named_sources(value: Any, field: str = "sources") -> tuple[Source, ...]:
    """The contract's sources behind a dict of name → source; raises like ``to_sources``."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise invalid(
            field,
            f"expected a dict of name → source, found {type(value).__name__}",
            "Write {name: file_source(…)}.",
        )
    return tuple(
        source
        for name, each in value.items()
        for source in to_sources(each, f"{field}.{name}", name)
    )


def _require_no_secret(source: Source, field: str) -> None:
    if isinstance(source, FileSource):
        remedy = "Let Spark reach the files by itself: by its cluster's configuration or its role."
        refuse_secrets(f"{field}.options", source.options, remedy)
        refuse_secrets(field, {"path": source.path}, remedy)


def _require_text(source: Source, field: str) -> None:
    for name in ("path", "format", "query"):
        if not str(getattr(source, name, "-")).strip():
            raise invalid(f"{field}.{name}", "is empty")
