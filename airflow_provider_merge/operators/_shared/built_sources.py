"""The contract's sources behind what ``jdbc_source``, ``table_source`` and their like return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.values import conf_text, flag, text, whole_number
from airflow_provider_merge.table_names import parse_table_name
from airflow_provider_merge.templates import PLACEHOLDER
from spark_jobs.contract import codec
from spark_jobs.contract.checks import unknown_field
from spark_jobs.contract.outside_sources import JdbcSource, PythonSource, SparkSource
from spark_jobs.contract.request import TableSource
from spark_jobs.contract.sources import OutsideSource
from spark_jobs.contract.table_versions import ALL, NOW, ChangeRange, TableVersion
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
_STATES: Final = ("snapshot", "tag", "as_of")
# What SQL text gives, whose meaning the table format decides.
_VERSION: Final = "version"
_CONNECTION: Final = "conn_id"
_RANGE: Final = ("start", "from_snapshot", "to_snapshot", "net", "on_gap")
# Beside a template: a value with which the other parameters can be checked.
_FITTING_TIME: Final = "2000-01-01"
_START: Final = "Set start to 'all', 'now', the id of a snapshot, {'tag': ...} or {'as_of': ...}."


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


def to_table_source(value: dict[str, Any], field: str, name: str) -> TableSource:
    """A table, perhaps at a former state.

    Raises:
        RequestError: REQUEST_INVALID, naming the place below ``field``.
    """
    _require_known(value, field, (*_STATES, _CONNECTION), (_VERSION,))
    table = parse_table_name(value.get("table"), f"{field}.table")
    version = _version(value, field)
    return TableSource(name, table, version, connection=_connection(value, field))


def to_changes_source(value: dict[str, Any], field: str, name: str) -> TableSource:
    """The changes of a table; raises as ``to_table_source``."""
    _require_known(value, field, (*_RANGE, _CONNECTION))
    table = parse_table_name(value.get("table"), f"{field}.table")
    document: dict[str, Any] = {}
    if "start" in value:
        document |= _start(value["start"], f"{field}.start")
    for bound in ("from_snapshot", "to_snapshot"):
        if bound in value:
            document[bound] = _whole(f"{field}.{bound}", value[bound])
    if "net" in value:
        document["net"] = value["net"] != PLACEHOLDER and flag(f"{field}.net", value["net"])
    if "on_gap" in value and value["on_gap"] != PLACEHOLDER:
        document["on_gap"] = text(f"{field}.on_gap", value["on_gap"])
    connection = _connection(value, field)
    try:
        return TableSource(name, table, changes=ChangeRange(**document), connection=connection)
    except RequestError as error:
        raise _placed(error, field) from None


def _connection(value: dict[str, Any], field: str) -> str | None:
    """The connection to another catalog; None: the table is in the operator's."""
    if _CONNECTION not in value:
        return None
    conn_id = text(f"{field}.{_CONNECTION}", value[_CONNECTION])
    if conn_id is None or not conn_id.strip():
        raise invalid(f"{field}.{_CONNECTION}", "is empty", "Name a connection, or leave it out.")
    return conn_id


def _start(value: Any, field: str) -> dict[str, Any]:
    if value in (ALL, NOW, PLACEHOLDER):
        return {"start": ALL if value == PLACEHOLDER else value}
    if isinstance(value, Mapping):
        unknown = sorted(set(map(str, value)) - set(_STATES))
        version = None if unknown else _version(dict(value), field)
        if version is None:
            raise invalid(field, f"{dict(value)!r} is no former state of a table", _START)
        return {"start": "at", "start_at": version}
    if isinstance(value, bool) or not str(value).strip().isdecimal():
        raise invalid(field, f"{value!r} is not where changes can begin", _START)
    return {"start": "at", "start_at": TableVersion(snapshot=_whole(field, value))}


def _require_known(
    value: dict[str, Any], field: str, names: tuple[str, ...], others: tuple[str, ...] = ()
) -> None:
    known = ("kind", "table", *names)
    unknown = sorted(set(value) - {*known, *others})
    if unknown:
        raise unknown_field(f"{field}.{unknown[0]}", unknown[0], known)


def _version(value: dict[str, Any], field: str) -> TableVersion | None:
    """The former state that a table's source names, if it does."""
    given = [each for each in (*_STATES, _VERSION) if each in value]
    if not given:
        return None
    if len(given) > 1:
        problem = f"{given[0]} and {given[1]} both tell which state is read"
        raise invalid(f"{field}.{given[1]}", problem, "Leave one out.")
    (what,) = given
    state, place = value[what], f"{field}.{what}"
    if what == "snapshot":
        made: Any = 1 if state == PLACEHOLDER else _whole(place, state)
    elif what == "as_of":
        written = state.isoformat() if hasattr(state, "isoformat") else state
        made = _FITTING_TIME if state == PLACEHOLDER else text(place, written)
    else:
        made = text(place, state)
    try:
        return TableVersion(**{what: made})
    except RequestError as error:
        raise _placed(error, field) from None


def _whole(place: str, value: Any) -> int:
    plain = str(value).strip()
    if value == PLACEHOLDER:
        return 1
    if isinstance(value, bool) or not (plain.isascii() and plain.isdecimal()):
        raise invalid(place, f"{value!r} is not the id of a snapshot", "Write a whole number.")
    return int(plain)


def _placed(error: RequestError, field: str) -> RequestError:
    """An error of the contract at its place among the parameters."""
    return invalid(".".join((field, *error.places)), error.problem, error.remedy)
