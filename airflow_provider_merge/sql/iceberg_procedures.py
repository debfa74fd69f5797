"""Iceberg's procedures for Spark: names, order and defaults of their arguments.

https://iceberg.apache.org/docs/latest/spark-procedures/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from airflow_provider_merge.sql.call_arguments import Argument, Call
from airflow_provider_merge.sql.procedures import (
    COMPACT,
    DRY_RUN,
    FASTER,
    Parameters,
    Procedure,
    Taken,
    flag_as,
    moment_as,
    number_as,
    only_value,
    text_as,
)

_ZORDER: Final = re.compile(r"zorder\s*\((.*)\)", re.IGNORECASE | re.DOTALL)


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
        parameters: Parameters = {}
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
                parameters[name] = made
        return parameters

    return taken


def _mode(value: str) -> str | None:
    return "full" if value.lower() == "true" else None


def _strategy_of_files(call: Call, at: Argument) -> Parameters:
    if call.text(at).lower() not in ("binpack", "sort"):
        raise call.wrong(at, "expected 'binpack' or 'sort'")
    return {}


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
        FASTER,
    ),
    "use-starting-sequence-number": "Leave it out: it is always on.",
}
PROCEDURES: Final = {
    "expire_snapshots": Procedure(
        "expire_snapshots",
        {
            "older_than": moment_as("older_than"),
            "retain_last": number_as("retain_min"),
            "max_concurrent_deletes": FASTER,
            "stream_results": FASTER,
            "snapshot_ids": "Leave it out, and give older_than or retain_last.",
            "clean_expired_metadata": flag_as("clean_expired_metadata"),
        },
    ),
    "remove_orphan_files": Procedure(
        "remove_orphan_files",
        {
            "older_than": moment_as("older_than"),
            "location": "Leave it out: the table's own folders are searched.",
            "dry_run": only_value(False, DRY_RUN),
            "max_concurrent_deletes": FASTER,
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
            "branch": text_as("of_branch"),
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
        {"use_caching": FASTER, "spec_id": COMPACT, "sort_by": COMPACT},
        {"manifests": "only"},
    ),
    "rollback_to_snapshot": Procedure("rollback", {"snapshot_id": number_as("snapshot_id")}),
    "set_current_snapshot": Procedure(
        "set_current_snapshot", {"snapshot_id": number_as("snapshot_id"), "ref": text_as("tag")}
    ),
    "cherrypick_snapshot": Procedure("cherry_pick", {"snapshot_id": number_as("snapshot_id")}),
    "publish_changes": Procedure("cherry_pick", {"wap_id": text_as("wap_id")}),
    "fast_forward": Procedure(
        "fast_forward", {"branch": text_as("of_branch"), "to": text_as("to")}
    ),
}
