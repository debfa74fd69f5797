"""The contract's sources behind the plain dicts of ``operators.sources``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.nothing import require_no_none
from airflow_provider_merge.operators._shared.built_sources import (
    OUTSIDE,
    to_changes_source,
    to_outside_source,
    to_table_source,
)
from airflow_provider_merge.operators._shared.cdc_parameters import with_events
from airflow_provider_merge.operators._shared.values import (
    column_list,
    conf_text,
    number,
    text,
    whole_number,
)
from airflow_provider_merge.secret_names import refuse_secrets
from airflow_provider_merge.templates import PLACEHOLDER
from spark_jobs.contract import codec
from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.checks import not_among
from spark_jobs.contract.deduplication import ALL_ROWS, DeduplicatedSource
from spark_jobs.contract.new_files import ALL, NewFiles
from spark_jobs.contract.request import FileSource, Source, SqlSource
from spark_jobs.contract.source_names import MERGE_SOURCE
from spark_jobs.errors import RequestError

_KINDS = {"file": FileSource, "new_files": FileSource, "sql": SqlSource}
_OF_NEW_FILES = ("start", "replaced", "max_files", "max_bytes")
# By kind: what has no default; the changes of a table begin at start or from_snapshot.
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "file": ("path", "format"),
    "new_files": ("path", "format", "start"),
    "table": ("table",),
    "changes": ("table", "start", "from_snapshot"),
    "sql": ("query", "sources"),
    "deduplicated": ("source", "by"),
    "cdc": ("source", "keys"),
    "jdbc": ("conn_id", "query", "table"),
    "spark": ("format",),
    "python": ("function",),
}
_INSTEAD = {
    "start": "from_snapshot",
    "from_snapshot": "start",
    "query": "table",
    "table": "query",
}
_COLUMNS = ("by", "order_by")
_ACCESS = "Give Spark access to the files through its cluster's configuration or role."
# Beside a template: a value with which the other parameters can be checked.
_FITTING = {"format": "csv", "quarantine": f"/{PLACEHOLDER}", "max_bad_rows": None}


def to_sources(value: Any, field: str = "source", name: str = MERGE_SOURCE) -> tuple[Source, ...]:
    """The contract's sources behind a plain dict, in the order in which they build on each other.

    Raises:
        RequestError: REQUEST_INVALID, naming the place below ``field``.
    """
    if not isinstance(value, dict):
        raise invalid(
            field,
            f"expected a source, found {type(value).__name__}",
            "Use file_source(...), new_files_source(...), table_source(...), changes_source(...), "
            "sql_source(...), jdbc_source(...), spark_source(...), python_source(...), "
            "deduplicate(...) or cdc_source(...).",
        )
    kind = value.get("kind")
    require_no_none(value, field, required_of(value))
    if kind == "table":
        return (to_table_source(value, field, name),)
    if kind == "changes":
        return (to_changes_source(value, field, name),)
    if kind == DeduplicatedSource.kind:
        return _deduplicated(value, field, name)
    if kind in OUTSIDE:
        return (to_outside_source(value, field, name),)
    if kind == CdcSource.kind:
        inner = to_sources(value.get("source"), f"{field}.source", f"{name}{ALL_ROWS}")
        return with_events(value, field, name, inner)
    if kind not in _KINDS:
        raise not_among(f"{field}.kind", kind, sorted(_REQUIRED))
    document = {**value, "name": name}
    named = document.pop("sources", {}) if kind == "sql" else {}
    inner = to_named_sources(named, f"{field}.sources")
    if kind in ("file", "new_files"):
        document = _file_document(document, field)
    source: Source = codec.decode(_KINDS[kind], document, field)
    _require_text(source, field)
    if isinstance(source, FileSource):
        refuse_secrets(f"{field}.options", source.options, _ACCESS)
    return (*inner, source)


def required_of(source: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of a source, as a plain dict, that have no default."""
    found = _REQUIRED.get(str(source.get("kind")), ())
    return tuple(each for each in found if _INSTEAD.get(each) not in source)


def _deduplicated(value: dict[str, Any], field: str, name: str) -> tuple[Source, ...]:
    """What is deduplicated, by a name of its own, then the source itself."""
    inner = to_sources(value.get("source"), f"{field}.source", f"{name}{ALL_ROWS}")
    columns = {each: column_list(value.get(each, []), f"{field}.{each}") for each in _COLUMNS}
    tie = value.get("tie", "fail")
    document = {**value, **columns, "name": name, "source": inner[-1].name}
    document["tie"] = "fail" if tie == PLACEHOLDER else tie
    return (*inner, codec.decode(DeduplicatedSource, document, field))


def reads_changes(value: Any) -> bool:
    """Whether the rows of a plain dict's source are changes of a table, perhaps deduplicated."""
    if not isinstance(value, Mapping):
        return False
    is_narrowed = value.get("kind") == DeduplicatedSource.kind
    return reads_changes(value.get("source")) if is_narrowed else value.get("kind") == "changes"


def _file_document(written: dict[str, Any], field: str) -> dict[str, Any]:
    """The contract's document of a file source, out of what people write and templates render."""
    places: dict[str, Any] = {
        name: _path_text(f"{field}.{name}", written[name])
        for name in ("path", "quarantine")
        if name in written
    }
    seen = {name: place for name, place in places.items() if isinstance(place, str)}
    refuse_secrets(field, seen, _ACCESS)
    document: dict[str, Any] = {
        name: _FITTING[name] if name in _FITTING and value == PLACEHOLDER else value
        for name, value in {**written, **places}.items()
    }
    for name in ("on_bad_rows", "quarantine"):
        document[name] = text(f"{field}.{name}", document.get(name))
    if written.get("kind") == "new_files":
        document = _new_files_document(document, field)
    document["max_bad_rows"] = number(f"{field}.max_bad_rows", document.get("max_bad_rows"))
    if document["on_bad_rows"] == PLACEHOLDER:
        asked = document["quarantine"] or document["max_bad_rows"]
        document["on_bad_rows"] = "quarantine" if asked else None
    if isinstance(document.get("options"), dict):
        document["options"] = {
            name: _option(f"{field}.options", name, value)
            for name, value in document["options"].items()
        }
    return document


def _new_files_document(document: dict[str, Any], field: str) -> dict[str, Any]:
    """The contract's document of a source of new files."""
    own = {name: document.pop(name) for name in _OF_NEW_FILES if name in document}
    if "start" not in own:
        raise invalid(f"{field}.start", "is missing", "Write 'all', 'now' or a time with its zone.")
    start = own["start"]
    told = start.isoformat() if hasattr(start, "isoformat") else text(f"{field}.start", start)
    made: dict[str, Any] = {"start": ALL if told == PLACEHOLDER else told}
    replaced = text(f"{field}.replaced", own.get("replaced"))
    if replaced not in (None, PLACEHOLDER):
        made["replaced"] = replaced
    for name in ("max_files", "max_bytes"):
        if own.get(name) != PLACEHOLDER:
            made[name] = whole_number(f"{field}.{name}", own.get(name))
    try:
        new_files = codec.encode(NewFiles(**made))
    except RequestError as error:
        raise error.at(".".join((field, *error.places))) from None
    return {**document, "kind": "file", "new_files": new_files}


def _path_text(field: str, value: Any) -> Any:
    """The text of a path object, such as an ``ObjectStoragePath``."""
    if not hasattr(value, "joinpath"):
        return value
    if getattr(value, "conn_id", None):
        raise invalid(field, "names a connection of Airflow, which Spark cannot use", _ACCESS)
    return str(value)


def _option(field: str, name: str, value: Any) -> str:
    if value == PLACEHOLDER and name.lower() == "mode":
        return "FAILFAST"
    return conf_text(f"{field}.{name}", value)


def to_named_sources(value: Any, field: str = "sources") -> tuple[Source, ...]:
    """The contract's sources behind a dict of name → source; raises like ``to_sources``."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise invalid(
            field,
            f"expected a dict of name -> source, found {type(value).__name__}",
            "Write {name: file_source(...)}.",
        )
    return tuple(
        source
        for name, each in value.items()
        for source in to_sources(each, f"{field}.{name}", name)
    )


def require_read(sources: Any, texts: Iterable[str]) -> None:
    """Check that each of the named sources is read: by the statement's texts or another source.

    Raises:
        RequestError: REQUEST_INVALID, naming the source.
    """
    if not isinstance(sources, Mapping):
        return
    queries = {name: " ".join(_queries(each)) for name, each in sources.items()}
    for name in sources:
        others = (query for other, query in queries.items() if other != name)
        word = re.compile(rf"\b{re.escape(str(name))}\b", re.IGNORECASE)
        if not any(word.search(text) for text in (*texts, *others)):
            raise invalid(
                f"sources.{name}",
                "the statement never reads it",
                "Remove it, or write its name where the statement names a table.",
            )


def _queries(source: Any) -> Iterator[str]:
    """The texts of a source, and of that which it deduplicates."""
    if isinstance(source, Mapping):
        yield str(source.get("query", ""))
        yield from _queries(source.get("source"))


def _require_text(source: Source, field: str) -> None:
    for name in ("path", "format", "query"):
        if not str(getattr(source, name, "-")).strip():
            raise invalid(f"{field}.{name}", "is empty")
