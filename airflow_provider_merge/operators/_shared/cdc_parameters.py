"""The contract's source of change events behind what ``cdc_source`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, get_args

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.values import column_list
from airflow_provider_merge.templates import PLACEHOLDER
from spark_jobs.contract import codec
from spark_jobs.contract.cdc import VALUES, CdcSource, EventFormat
from spark_jobs.contract.checks import not_among, unknown_field
from spark_jobs.contract.request import FileSource, Source, TableSource
from spark_jobs.contract.sql_text import quote, unquoted
from spark_jobs.contract.table_versions import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    SNAPSHOT_ID,
    UPDATE_AFTER,
    UPDATE_BEFORE,
)
from spark_jobs.errors import NotSupportedError

_KNOWN: Final = (
    *("kind", "source", "keys", "sequence", "operation", "values", "format", "late", "deleted"),
    *("unchanged", "unavailable", "without", "schema", "encodings", "table"),
)
_OPERATIONS: Final = ("insert", "update", "delete", "before", "truncate", "ignore")
_OF_DOCUMENTS: Final = {"maxwell": "type", "canal": "type"}
# What changes_source says by itself.
_TOLD_BY_CHANGES: Final = ("sequence", "operation", "values", "format", "late", "without")
_CHANGES: Final = {
    "insert": [INSERT],
    "update": [UPDATE_AFTER],
    "delete": [DELETE],
    "before": [UPDATE_BEFORE],
}


def is_cdc(source: Any) -> bool:
    """Whether this is what ``cdc_source`` returns."""
    return isinstance(source, Mapping) and source.get("kind") == CdcSource.kind


def with_events(
    value: dict[str, Any], field: str, name: str, inner: tuple[Source, ...]
) -> tuple[Source, ...]:
    """The sources of the events, and the one that says what they mean.

    Raises:
        RequestError: REQUEST_INVALID, naming the place below ``field``.
        NotSupportedError: the events cannot be told from these files or changes.
    """
    unknown = sorted(set(value) - set(_KNOWN))
    if unknown:
        raise unknown_field(f"{field}.{unknown[0]}", unknown[0], _KNOWN[1:])
    events, keys = inner[-1], column_list(value.get("keys", []), f"{field}.keys")
    if isinstance(events, TableSource) and events.changes is not None:
        document = _of_changes(value, field, events)
    else:
        document = _document(value, field)
    document |= {"kind": CdcSource.kind, "name": name, "source": events.name, "keys": keys}
    for option in ("unchanged", "without"):
        if option in value:
            document[option] = column_list(value[option], f"{field}.{option}")
    for option in ("deleted", "unavailable"):
        if option in value:
            document[option] = value[option]
    if document.get("schema") == PLACEHOLDER:
        known = (*document["keys"], *document.get("unchanged", []))
        document |= {"schema": ", ".join(f"{quote(each)} STRING" for each in known)}
        document["encodings"] = {}
    made = codec.decode(CdcSource, document, field)
    if made.format != "columns" and isinstance(events, FileSource):
        events = _files_of(events, made, field)
    return (*inner[:-1], events, made)


def _document(value: dict[str, Any], field: str) -> dict[str, Any]:
    format_ = value.get("format", "columns")
    if format_ == PLACEHOLDER:
        problem = "decides what the other parameters mean, so it is no template"
        raise invalid(f"{field}.format", problem, "Write it in the DAG file.")
    formats = get_args(EventFormat)
    if format_ not in formats:
        raise not_among(f"{field}.format", format_, formats)
    table = value.get("table", PLACEHOLDER)
    if isinstance(table, str) and PLACEHOLDER not in table and "." not in table:
        problem = f"{table!r} does not say which schema or database the table is in"
        raise invalid(f"{field}.table", problem, "Write public.customers, or shop.customers.")
    document: dict[str, Any] = {
        "format": format_,
        "operation": value.get("operation", _OF_DOCUMENTS.get(format_, "op")),
        "sequence": _sequence(value.get("sequence", []), f"{field}.sequence"),
        "values": codec.encode(VALUES[format_]) if format_ in VALUES else {},
    }
    document |= {each: value[each] for each in ("schema", "encodings", "table") if each in value}
    if "late" in value and value["late"] != PLACEHOLDER:
        document["late"] = value["late"]
    if "values" in value:
        document["values"] |= _values(value["values"], f"{field}.values")
    elif format_ == "columns":
        raise invalid(
            f"{field}.values",
            "is missing",
            "Write {'insert': 'c', 'update': 'u', 'delete': 'd'}, with the values of operation.",
        )
    return document


def _of_changes(value: dict[str, Any], field: str, events: TableSource) -> dict[str, Any]:
    """Events of ``changes_source``, which says itself what they mean, and when they were."""
    for option in _TOLD_BY_CHANGES:
        if option in value:
            problem = "is told by the changes of a table themselves"
            raise invalid(f"{field}.{option}", problem, "Leave it out.")
    if events.changes is not None and not events.changes.net:
        raise NotSupportedError(
            f"{field}: changes of a table that are not net have no order within a snapshot.",
            "Write changes_source(..., net=True).",
        )
    return {
        "operation": CHANGE_TYPE,
        "values": _CHANGES,
        "late": "apply",
        "without": [SNAPSHOT_ID],
    }


def _sequence(value: Any, field: str) -> list[dict[str, str]]:
    if isinstance(value, Mapping):
        if not all(isinstance(each, str) for each in value.values()):
            raise invalid(field, f"expected column -> place in the event, found {value!r}")
        return [{"column": unquoted(k), "path": unquoted(v)} for k, v in value.items()]
    names = column_list(value, field)
    return [{"column": each.rpartition(".")[2], "path": each} for each in names]


def _values(value: Any, field: str) -> dict[str, list[str]]:
    if not isinstance(value, Mapping):
        problem = f"expected a dict of operation -> value, found {type(value).__name__}"
        raise invalid(field, problem, "Write {'insert': 'c', 'update': 'u', 'delete': 'd'}.")
    made: dict[str, list[str]] = {}
    for name, codes in value.items():
        if name not in _OPERATIONS:
            raise not_among(field, name, _OPERATIONS)
        listed = list(codes) if isinstance(codes, list | tuple) else [codes]
        if not all(isinstance(each, str) for each in listed):
            problem = f"expected texts, found {codes!r}"
            raise invalid(f"{field}.{name}", problem, "Write '1' for 1, and 'true' for TRUE.")
        made[name] = [f"{each} {name}" if each == PLACEHOLDER else each for each in listed]
    return made


def _files_of(files: FileSource, events: CdcSource, field: str) -> FileSource:
    """The files, with the columns of the documents in them."""
    if files.format.lower() != "json":
        raise NotSupportedError(
            f"{field}: {events.format} documents are read from JSON files, not from "
            f"{files.format} files.",
            "Let each line of the files be a document, and write 'json'.",
        )
    if files.schema is not None:
        problem = "is told by the documents"
        raise invalid(f"{field}.source.schema", problem, "Give the columns to cdc_source.")
    return replace(files, schema=events.document_schema, missing="null")
