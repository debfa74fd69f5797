"""The steps of a plan: what is to be done to each table, or why nothing is; also as plain data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, Literal, get_args

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.table_names import parse_table_name, quoted_name
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, RemoveOrphanFilesSpec
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError, RequestError, error_of

Status = Literal["planned", "done", "unchanged", "nothing", "left", "refused", "gone", "failed"]
ACTIONS: Final = (CompactSpec.kind, ExpireSnapshotsSpec.kind, RemoveOrphanFilesSpec.kind)
_REMEDY: Final = "Pass what a TableCareOperator with dry_run=True returned."


@dataclass(frozen=True, slots=True)
class Step:
    """One action on one table; without an ``action``, what is true of the whole table.

    ``catalog`` is the id of the connection. ``read`` and ``write`` are bytes of data files,
    ``free`` those that go sooner or later (None: only the search for orphan files tells).
    ``files``: how many fewer data files there will be, ``snapshots``: how many expire.
    ``at_least``: there may be more to free. ``code``, ``reason`` and ``remedy`` say why it is not
    planned, or not done. ``max_deletes``: how many snapshots may expire at most.
    """

    catalog: str
    table: str
    action: str = ""
    status: Status = "planned"
    read: int = 0
    write: int = 0
    free: int | None = 0
    files: int = 0
    snapshots: int = 0
    at_least: bool = False
    code: str = ""
    reason: str = ""
    remedy: str = ""
    max_deletes: int | None = None

    @property
    def name(self) -> str:
        """What tells it from all others; part of its operation id."""
        return " ".join(filter(None, (self.action, self.catalog, self.table)))

    @property
    def target(self) -> TableName:
        """The table."""
        return parse_table_name(self.table, "table")

    @property
    def error(self) -> JobError:
        """Why it failed."""
        return error_of(ErrorCode[self.code], self.reason, self.remedy)

    def ended(self, status: Status, reason: str = "") -> Step:
        """The same step with what became of it."""
        return replace(self, status=status, reason=reason)

    def failed(self, error: JobError) -> Step:
        """The same step with an error: a refusal is no failure, nor is a table that is gone."""
        status: Status = "failed"
        if error.code is ErrorCode.NOT_SUPPORTED:
            status = "refused"
        elif error.code is ErrorCode.TABLE_NOT_FOUND:
            status = "gone"
        elif error.code is ErrorCode.TIME_LIMIT_REACHED:
            status = "left"
        return replace(
            self,
            status=status,
            code=error.code.name,
            reason=error.message,
            remedy=error.remedy,
        )


def table_text(name: TableName) -> str:
    """The table as people write it, with backticks only where they are needed."""
    try:
        is_plain = TableName.parse(str(name)) == name
    except RequestError:
        is_plain = False
    return str(name) if is_plain else quoted_name(name)


def line_of(step: Step) -> str:
    """A step for people."""
    parts = []
    if step.read:
        parts.append(f"reads {step.read:,} bytes, writes {step.write:,}")
    if step.free:
        parts.append(f"frees {'at least ' if step.at_least else ''}{step.free:,} bytes")
    if step.snapshots:
        parts.append(f"{step.snapshots:,} snapshots")
    if step.files:
        parts.append(f"{step.files:,} fewer files")
    why = f" ({step.code + ': ' if step.code else ''}{step.reason})" if step.reason else ""
    return f"{step.name}: {step.status}{why}" + (f": {', '.join(parts)}" if parts else "")


def document_of(steps: Iterable[Step], status: str) -> dict[str, Any]:
    """The result of a task: sums of what is planned or done, counts by status, and all steps."""
    all_steps = list(steps)
    at_work = [each for each in all_steps if each.status in ("planned", "done")]
    counts = {each: sum(step.status == each for step in all_steps) for each in get_args(Status)}
    return {
        "status": status,
        "read": sum(each.read for each in at_work),
        "write": sum(each.write for each in at_work),
        "free": sum(each.free or 0 for each in at_work),
        "counts": {name: count for name, count in counts.items() if count},
        "tables": [asdict(each) for each in all_steps],
    }


def steps_in(document: Any, field: str) -> list[Step]:
    """The steps of a result, which may also be its JSON.

    Raises:
        RequestError: REQUEST_INVALID, naming the part of ``field``.
    """
    plan = _parsed(document, field) if isinstance(document, str) else document
    listed = plan.get("tables") if isinstance(plan, Mapping) else None
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise invalid(field, "is not the plan of a dry run", _REMEDY)
    steps = [_step(each, f"{field}.tables[{index}]") for index, each in enumerate(listed)]
    if len({each.name for each in steps}) < len(steps):
        raise invalid(field, "has an action on a table twice", _REMEDY)
    return steps


def _parsed(text: str, field: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise invalid(field, "is not the plan of a dry run as JSON", _REMEDY) from None


def _step(document: Any, place: str) -> Step:
    types = {each.name: type(each.default) for each in fields(Step)}
    if not isinstance(document, Mapping):
        raise invalid(place, f"expected a dict, found {type(document).__name__}", _REMEDY)
    for name, value in document.items():
        if name not in types:
            raise invalid(f"{place}.{name}", "is unknown", _REMEDY)
        is_number = name in ("free", "max_deletes") or types[name] is int
        kind = int if is_number else bool if types[name] is bool else str
        may_be_none = name in ("free", "max_deletes") and value is None
        if not (may_be_none or type(value) is kind):
            raise invalid(f"{place}.{name}", f"{value!r} is not a {kind.__name__}", _REMEDY)
    for name, choices in (("action", ("", *ACTIONS)), ("status", get_args(Status))):
        if document.get(name, choices[0]) not in choices:
            raise invalid(f"{place}.{name}", f"{document[name]!r} is unknown", _REMEDY)
    if not document.get("catalog"):
        raise invalid(f"{place}.catalog", "missing", _REMEDY)
    parse_table_name(document.get("table"), f"{place}.table")
    return Step(**document)
