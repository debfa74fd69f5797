"""Paimon's procedures for Spark: names, order and defaults of their arguments.

https://paimon.apache.org/docs/master/spark/procedures/
"""

from __future__ import annotations

from typing import Final

from airflow_provider_merge.sql.call_arguments import Argument, Call
from airflow_provider_merge.sql.procedures import (
    COMPACT,
    DRY_RUN,
    FASTER,
    Parameters,
    Procedure,
    moment_as,
    number_as,
    only_value,
    text_as,
)


def _partitions(call: Call, at: Argument) -> Parameters:
    """``p1=0,p2=0;p1=0,p2=1``, as Paimon writes partitions."""
    partitions = []
    for partition in call.text(at).split(";"):
        pairs = [each.partition("=") for each in partition.split(",")]
        if not all(separator for _, separator, _ in pairs):
            raise call.wrong(at, "expected partitions such as 'day=2026-01-31;day=2026-02-01'")
        partitions.append({name.strip(): value.strip() for name, _, value in pairs})
    return {"partitions": partitions}


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


def _version(call: Call, at: Argument) -> Parameters:
    """A snapshot's id, else a tag."""
    text = str(at.value)
    return {"snapshot_id": call.number(at)} if text.isdecimal() else {"tag": call.text(at)}


PROCEDURES: Final = {
    "expire_snapshots": Procedure(
        "expire_snapshots",
        {
            "retain_max": number_as("retain_max"),
            "retain_min": number_as("retain_min"),
            "older_than": moment_as("older_than"),
            "max_deletes": number_as("max_deletes"),
            "options": "Leave it out: the table's own options count.",
        },
    ),
    "remove_orphan_files": Procedure(
        "remove_orphan_files",
        {
            "older_than": moment_as("older_than"),
            "dry_run": only_value(False, DRY_RUN),
            "parallelism": FASTER,
            "mode": FASTER,
        },
    ),
    "compact": Procedure(
        "compact",
        {
            "partitions": _partitions,
            "compact_strategy": _strategy,
            "order_strategy": _order_strategy,
            "order_by": _order_by,
            "where": COMPACT,
            "options": COMPACT,
            "partition_idle_time": COMPACT,
        },
        {"mode": "full"},
        ordered=2,
    ),
    "create_tag": Procedure(
        "create_tag",
        {
            "tag": text_as("tag"),
            "snapshot": number_as("snapshot_id"),
            "time_retained": text_as("retention"),
        },
    ),
    "delete_tag": Procedure("delete_tag", {"tag": _one_tag}),
    "rollback": Procedure(
        "rollback",
        {
            "version": _version,
            "snapshot": number_as("snapshot_id"),
            "tag": text_as("tag"),
        },
        ordered=2,
    ),
    "create_branch": Procedure(
        "create_branch",
        {"branch": text_as("branch"), "tag": text_as("tag")},
        needs={"tag": "Name a tag: without one, Paimon makes an empty branch."},
    ),
    "delete_branch": Procedure("delete_branch", {"branch": text_as("branch")}),
    "fast_forward": Procedure("fast_forward", {"branch": text_as("to")}),
}
