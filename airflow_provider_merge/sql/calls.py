"""CALL of the formats' own procedures, as the operations that do the same here.

Names, order and defaults of the arguments are those of the procedures for Spark of Iceberg
(https://iceberg.apache.org/docs/latest/spark-procedures/) and Paimon
(https://paimon.apache.org/docs/master/spark/procedures/).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from airflow_provider_merge.sql.call_arguments import Argument, Call, read_call
from airflow_provider_merge.sql.text import SqlText
from spark_jobs.contract.branches import BRANCH_MARK, MAIN_BRANCH
from spark_jobs.contract.identifiers import quote, unquoted
from spark_jobs.contract.request import TableName
from spark_jobs.errors import RequestError

Parameters = dict[str, Any]
# Of an argument's value, the parameters of the operation.
Taken = Callable[[Call, Argument], Parameters]

_FORMATS: Final = {"system": "iceberg", "sys": "paimon"}
_FASTER: Final = "Leave it out: it does not change what is done."
_DRY_RUN: Final = "Leave it out, and run the task with dry_run=True."
_BY_HAND: Final = "Leave it out, or use {operator} with parameters of its own."
_ZORDER: Final = re.compile(r"zorder\s*\((.*)\)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure: its ``operation`` here, and what each argument besides ``table`` means.

    Arguments stand in the order of ``takes``; text in place of what one means says why it is
    refused. ``ordered``: how many, with ``table``, have a place; None: all. ``always``: parameters
    that do not depend on arguments.
    """

    operation: str
    takes: Mapping[str, Taken | str] = field(default_factory=dict)
    always: Mapping[str, Any] = field(default_factory=dict)
    ordered: int | None = None


@dataclass(frozen=True, slots=True)
class ReadCall:
    """The operation and the parameters of a CALL; ``format``: of the catalog that it is for.

    ``catalog``: its name in the text, if it has one.
    """

    operation: str
    parameters: Parameters
    format: str
    catalog: str


def read_procedure(sql: SqlText, database: str | None, time_zone: str) -> ReadCall:
    """What a whole CALL asks for; ``database`` is that of a table that is named without one.

    Raises:
        RequestError: SYNTAX_ERROR; REQUEST_INVALID: an unknown argument, or a wrong value.
        NotSupportedError: a procedure or an argument that has no equal here.
    """
    call = read_call(sql, time_zone)
    kind = call.name[-2].lower() if len(call.name) in (2, 3) else ""
    known = _PROCEDURES.get(kind, {})
    procedure = known.get(call.name[-1].lower())
    if procedure is None:
        start = sql.tokens[1].start
        others = ", ".join(known) or "CALL system.... of Iceberg, CALL sys.... of Paimon"
        problem = f"the procedure {'.'.join(call.name)} is not supported"
        raise sql.unsupported(start, problem, f"Supported: {others}.")
    names = ("table", *procedure.takes)
    ordered = len(names) if procedure.ordered is None else procedure.ordered
    arguments = call.by_name(names, ordered)
    if "table" not in arguments:
        raise sql.error(sql.tokens[0].start, "the argument table is missing")
    parameters: Parameters = {"target": _table(call, arguments.pop("table"), database)}
    parameters |= procedure.always
    for name, argument in arguments.items():
        taken = procedure.takes[name]
        if isinstance(taken, str):
            raise call.unsupported(argument, name, taken)
        parameters |= taken(call, argument)
    catalog = call.name[0] if len(call.name) == 3 else ""
    return ReadCall(procedure.operation, _on_branch(parameters), _FORMATS[kind], catalog)


def _table(call: Call, at: Argument, database: str | None) -> str:
    text = call.text(at)
    try:
        if database is not None and "." not in text:
            table = TableName(database, unquoted(text.strip()))
        else:
            table = TableName.parse(text)
    except RequestError as error:
        raise call.wrong(at, error.message, "Write 'database.table'.") from None
    parts = (table.catalog, table.database, table.table)
    return ".".join(quote(each) for each in parts if each)


def _on_branch(parameters: Parameters) -> Parameters:
    """The parameters with the branch that the operation is about in the name of the target."""
    branch = parameters.pop("of_branch", MAIN_BRANCH)
    if branch != MAIN_BRANCH:
        head, _, table = parameters["target"].rpartition(".")
        named = quote(f"{unquoted(table)}{BRANCH_MARK}{branch}")
        parameters["target"] = f"{head}.{named}"
    return parameters


def _text(name: str) -> Taken:
    return lambda call, at: {name: call.text(at)}


def _number(name: str) -> Taken:
    return lambda call, at: {name: call.number(at)}


def _moment(name: str) -> Taken:
    return lambda call, at: {name: call.moment(at)}


def _flag(name: str) -> Taken:
    return lambda call, at: {name: call.flag(at)}


def _only(wanted: Any, remedy: str) -> Taken:
    """An argument that may have the one value that it has here anyway."""

    def taken(call: Call, at: Argument) -> Parameters:
        value = at.value.lower() if isinstance(at.value, str) else at.value
        if value != wanted:
            raise call.unsupported(at, f"value {at.value}", remedy)
        return {}

    return taken


def _sort_order(call: Call, at: Argument) -> Parameters:
    text = call.text(at)
    zorder = _ZORDER.fullmatch(text.strip())
    names = [each.strip() for each in (zorder[1] if zorder else text).split(",")]
    return {"zorder_by" if zorder else "sort_by": names}


def _options(takes: Mapping[str, tuple[str, Callable[[str], Any]] | str]) -> Taken:
    """``map('option', 'value', ...)``: the parameter of each option, and of its value."""

    def taken(call: Call, at: Argument) -> Parameters:
        if not isinstance(at.value, Mapping):
            raise call.wrong(at, "expected map('option', 'value')")
        found: Parameters = {}
        for option, value in at.value.items():
            known = takes.get(option)
            if not isinstance(known, tuple):
                others = ", ".join(each for each in takes if isinstance(takes[each], tuple))
                raise call.unsupported(at, f"option {option}", known or f"Known: {others}.")
            name, read = known
            try:
                made = read(value)
            except ValueError:
                raise call.wrong(at, f"{value!r} is no value of option {option}") from None
            if made is not None:
                found[name] = made
        return found

    return taken


def _mode(value: str) -> str | None:
    return "full" if value.lower() == "true" else None


def _partitions(call: Call, at: Argument) -> Parameters:
    """``p1=0,p2=0;p1=0,p2=1``, as Paimon writes partitions."""
    found = []
    for partition in call.text(at).split(";"):
        pairs = [each.partition("=") for each in partition.split(",")]
        if not all(separator for _, separator, _ in pairs):
            raise call.wrong(at, "expected partitions such as 'day=2026-01-31;day=2026-02-01'")
        found.append({name.strip(): value.strip() for name, _, value in pairs})
    return {"partitions": found}


def _order_by(call: Call, at: Argument) -> Parameters:
    """The columns; ``order_strategy`` says how, wherever it stands."""
    strategy = call.named.get("order_strategy")
    kind = "" if strategy is None else call.text(strategy).lower()
    names = [each.strip() for each in call.text(at).split(",")]
    if kind not in ("order", "zorder"):
        raise call.unsupported(at, f"order_strategy {kind}", "Write 'order' or 'zorder'.")
    return {"sort_by" if kind == "order" else "zorder_by": names}


def _order_strategy(call: Call, at: Argument) -> Parameters:
    if call.text(at).lower() != "none" and "order_by" not in call.named:
        raise call.wrong(at, "order_by is missing")
    return {}


def _strategy(call: Call, at: Argument) -> Parameters:
    kind = call.text(at).lower()
    if kind not in ("minor", "full"):
        raise call.wrong(at, "expected 'minor' or 'full'")
    return {"mode": kind}


def _one_tag(call: Call, at: Argument) -> Parameters:
    if "," in call.text(at):
        raise call.unsupported(at, "tag with several names", "Write a CALL for each.")
    return {"tag": call.text(at)}


def _strategy_of_files(call: Call, at: Argument) -> Parameters:
    if call.text(at).lower() not in ("binpack", "sort"):
        raise call.wrong(at, "expected 'binpack' or 'sort'")
    return {}


def _version(call: Call, at: Argument) -> Parameters:
    """A snapshot's id, else a tag."""
    text = str(at.value)
    return {"snapshot_id": call.number(at)} if text.isdecimal() else {"tag": call.text(at)}


_SIZE: Final = ("target_file_size", lambda value: f"{value} b")
_REWRITE: Final[Mapping[str, Any]] = {
    "target-file-size-bytes": _SIZE,
    "min-input-files": ("min_files", int),
    "delete-ratio-threshold": ("deleted_share", float),
    "rewrite-all": ("mode", _mode),
    **dict.fromkeys(
        (
            "partial-progress.enabled",
            "partial-progress.max-commits",
            "max-concurrent-file-group-rewrites",
        ),
        _FASTER,
    ),
    "use-starting-sequence-number": "Leave it out: it is always on.",
}
_COMPACT: Final = _BY_HAND.format(operator="CompactOperator")
_ICEBERG: Final = {
    "expire_snapshots": Procedure(
        "expire_snapshots",
        {
            "older_than": _moment("older_than"),
            "retain_last": _number("retain_min"),
            "max_concurrent_deletes": _FASTER,
            "stream_results": _FASTER,
            "snapshot_ids": "Leave it out, and give older_than or retain_last.",
            "clean_expired_metadata": _flag("clean_expired_metadata"),
        },
    ),
    "remove_orphan_files": Procedure(
        "remove_orphan_files",
        {
            "older_than": _moment("older_than"),
            "location": "Leave it out: the table's own folders are searched.",
            "dry_run": _only(False, _DRY_RUN),
            "max_concurrent_deletes": _FASTER,
        },
        {"older_than": "3 d"},
    ),
    "rewrite_data_files": Procedure(
        "compact",
        {
            "strategy": _strategy_of_files,
            "sort_order": _sort_order,
            "options": _options(_REWRITE),
            "where": "Leave it out, or use CompactOperator with partitions.",
            "branch": _text("of_branch"),
        },
    ),
    "rewrite_position_delete_files": Procedure(
        "compact",
        {
            "options": _options({"min-input-files": ("min_files", int)}),
            "where": "Leave it out, or use CompactOperator with partitions.",
        },
        {"mode": "deletes"},
    ),
    "rewrite_manifests": Procedure(
        "compact",
        {"use_caching": _FASTER, "spec_id": _COMPACT, "sort_by": _COMPACT},
        {"manifests": "only"},
    ),
    "rollback_to_snapshot": Procedure("rollback", {"snapshot_id": _number("snapshot_id")}),
    "set_current_snapshot": Procedure(
        "set_current_snapshot", {"snapshot_id": _number("snapshot_id"), "ref": _text("tag")}
    ),
    "cherrypick_snapshot": Procedure("cherry_pick", {"snapshot_id": _number("snapshot_id")}),
    "publish_changes": Procedure("cherry_pick", {"wap_id": _text("wap_id")}),
    "fast_forward": Procedure("fast_forward", {"branch": _text("of_branch"), "to": _text("to")}),
}
_PAIMON: Final = {
    "expire_snapshots": Procedure(
        "expire_snapshots",
        {
            "retain_max": _number("retain_max"),
            "retain_min": _number("retain_min"),
            "older_than": _moment("older_than"),
            "max_deletes": _number("max_deletes"),
            "options": "Leave it out: the table's own options count.",
        },
    ),
    "remove_orphan_files": Procedure(
        "remove_orphan_files",
        {
            "older_than": _moment("older_than"),
            "dry_run": _only(False, _DRY_RUN),
            "parallelism": _FASTER,
            "mode": _FASTER,
        },
    ),
    "compact": Procedure(
        "compact",
        {
            "partitions": _partitions,
            "compact_strategy": _strategy,
            "order_strategy": _order_strategy,
            "order_by": _order_by,
            "where": _COMPACT,
            "options": _COMPACT,
            "partition_idle_time": _COMPACT,
        },
        {"mode": "full"},
        ordered=2,
    ),
    "create_tag": Procedure(
        "create_tag",
        {
            "tag": _text("tag"),
            "snapshot": _number("snapshot_id"),
            "time_retained": _text("retention"),
        },
    ),
    "delete_tag": Procedure("delete_tag", {"tag": _one_tag}),
    "rollback": Procedure(
        "rollback",
        {
            "version": _version,
            "snapshot": _number("snapshot_id"),
            "tag": _text("tag"),
        },
        ordered=2,
    ),
    "create_branch": Procedure("create_branch", {"branch": _text("branch"), "tag": _text("tag")}),
    "delete_branch": Procedure("delete_branch", {"branch": _text("branch")}),
    "fast_forward": Procedure("fast_forward", {"branch": _text("to")}),
}
_PROCEDURES: Final[Mapping[str, Mapping[str, Procedure]]] = {
    "system": _ICEBERG,
    "sys": _PAIMON,
}
