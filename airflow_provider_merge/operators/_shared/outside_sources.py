"""The contract's sources behind what ``jdbc_source`` and its like return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.values import conf_text, text, whole_number
from airflow_provider_merge.templates import PLACEHOLDER
from spark_jobs.contract import codec
from spark_jobs.contract.near_names import unknown_field
from spark_jobs.contract.outside_sources import JdbcSource, PythonSource, SparkSource
from spark_jobs.contract.sources import OutsideSource
from spark_jobs.errors import RequestError

OUTSIDE: Final = ("jdbc", "spark", "python")
_KNOWN: Final = {
    "jdbc": ("conn_id", "query", "table", "partition_by", "partitions", "fetch_size"),
    "spark": ("format", "options", "schema", "secret_options"),
    "python": ("function", "arguments"),
}
_NAMES_CODE: Final = {
    "function": "Write module:function, and what varies into arguments.",
    "format": "Write its name, and what varies into options.",
}
# Beside a template: values with which the other parameters can be checked.
_FITTING: Final[Mapping[str, Any]] = {"table": "a_table"}


def to_outside_source(value: dict[str, Any], field: str, name: str) -> OutsideSource:
    """A database, a data source of Spark or a function.

    Raises:
        RequestError: REQUEST_INVALID, naming the place below ``field``.
    """
    kind = str(value["kind"])
    given = {each: part for each, part in value.items() if each != "kind"}
    unknown = sorted(set(given) - set(_KNOWN[kind]))
    if unknown:
        raise unknown_field(f"{field}.{unknown[0]}", unknown[0], _KNOWN[kind])
    document: dict[str, Any] = {
        each: _FITTING[each] if part == PLACEHOLDER and each in _FITTING else part
        for each, part in given.items()
    }
    document |= {"kind": kind, "name": name}
    for part, remedy in _NAMES_CODE.items():
        if value.get(part) == PLACEHOLDER:
            raise invalid(f"{field}.{part}", "is a template, but it names code that runs", remedy)
    try:
        if kind == "jdbc":
            return _database(document, field)
        return _of_spark(document, field) if kind == "spark" else _function(document, field)
    except RequestError as error:
        raise error.at(".".join(error.places)) from None


def _function(document: dict[str, Any], field: str) -> PythonSource:
    source: PythonSource = codec.decode(PythonSource, document, field)
    return source


def _database(document: dict[str, Any], field: str) -> JdbcSource:
    document["connection"] = text(f"{field}.conn_id", document.pop("conn_id", None))
    for option in ("partitions", "fetch_size"):
        if document.get(option) == PLACEHOLDER:
            del document[option]
        elif option in document:
            document[option] = whole_number(f"{field}.{option}", document[option])
    source: JdbcSource = codec.decode(JdbcSource, document, field)
    return source


def _of_spark(document: dict[str, Any], field: str) -> SparkSource:
    for part in ("options", "secret_options"):
        if isinstance(document.get(part), Mapping):
            document[part] = {
                str(name): conf_text(f"{field}.{part}.{name}", value)
                for name, value in document[part].items()
            }
    source: SparkSource = codec.decode(SparkSource, document, field)
    return source
