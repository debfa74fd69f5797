"""What a request asks for, as a hash: one operation id never has two.

Fields that a release adds must not change digests while they are not set: a retry may be of a task
that an older release began.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

_NOT_MEANT: Final = (
    "operation_id",
    "origin",
    "after_ended_try",
    "text_limits",
    "approved",
    "version",
)
# Fields that the first version of requests did not have.
_ADDED_TO_SOURCES: Final = (
    *("on_bad_rows", "quarantine", "max_bad_rows", "new_files", "missing"),
    *("at", "changes", "connection", "catalog"),
)
_ADDED_TO_STATEMENTS: Final = {
    "merge": ("clauses_of",),
    "insert_into": ("schema_evolution", "new_table"),
    "insert_overwrite": ("schema_evolution", "new_table", "whole_if_unpartitioned"),
    "create_table": ("format", "like", "source", "keep_existing"),
    "compact": ("sort_by", "zorder_by"),
    "expire_snapshots": ("clean_expired_metadata",),
}
_ADDED_TO_COLUMNS: Final = ("default",)
# Part of every digest: an option that requests used to have and that was never set.
_REMOVED_OPTIONS: Final = {"broadcast_limit": 150 * 1024 * 1024}
# Of options: limits are not what a statement means, nor is what is shown of it.
_LIMITS: Final = ("max_new_partitions", "preview_rows")


def digest_of(document: dict[str, Any]) -> str:
    """SHA-256 (hex) of what the JSON form of a request means; changes ``document``."""
    _reduce(document)
    return _sha256(document)


def part_digests(document: dict[str, Any]) -> dict[str, str]:
    """SHA-256 (hex) of each part of the JSON form of a request that is no dry run, by name."""
    _reduce(document)
    for name in ("dry_run", "plan_only"):
        document.pop(name, None)
    return {name: _sha256(part) for name, part in document.items()}


def _sha256(document: Any) -> str:
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _reduce(document: dict[str, Any]) -> None:
    """Leave what is meant, as digests have always had it."""
    for name in _NOT_MEANT:
        del document[name]
    del document["catalog"]["workspace"]
    for name in ("dry_run", "plan_only"):
        if not document[name]:
            del document[name]
    options = {n: v for n, v in document["options"].items() if n not in _LIMITS}
    given = {name: each for name, each in options.items() if each is not None}
    document["options"] = {**given, **_REMOVED_OPTIONS}
    guards = {n: v for n, v in (document["guards"] or {}).items() if v not in (None, [])}
    if guards:
        document["guards"] = guards
    else:
        del document["guards"]
    _drop_unset(document["statement"])
    for source in document["sources"]:
        if source.get("catalog") is not None:
            del source["catalog"]["workspace"]
        for name in _ADDED_TO_SOURCES:
            if source.get(name, "") is None:
                del source[name]


def _drop_unset(statement: dict[str, Any]) -> None:
    for name in _ADDED_TO_STATEMENTS.get(statement["kind"], ()):
        if not statement.get(name, True):
            del statement[name]
    if statement.get("manifests") == "keep":
        del statement["manifests"]
    if statement["kind"] != "create_table":
        return
    for column in statement["columns"]:
        for name in _ADDED_TO_COLUMNS:
            if column[name] is None:
                del column[name]
