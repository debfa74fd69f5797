"""Rows that a statement leaves in other tables than its target: an audit of changes, late rows.

They are kept in files before the target's snapshot is published, which names them; then they are
inserted into their table, by an operation of their own that a later try can make up for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from spark_jobs.contract import codec
from spark_jobs.contract.checks import require
from spark_jobs.contract.sql_text import name_parts, quote
from spark_jobs.contract.table_name import BRANCH_MARK, MAIN_BRANCH
from spark_jobs.errors import AnalysisError, ErrorCode

SideKind = Literal["audit", "quarantine"]

# The snapshot's properties: what the target's leaves elsewhere, and whose rows another one has, or,
# of the request with this digest, all that it did.
SIDE_OUTPUTS: Final = "merge.side-outputs"
SIDE_OF: Final = "merge.side-of"
SIDE_ALONE: Final = "merge.side-alone"
# The columns of an audit table, with their types.
AUDIT_COLUMNS: Final[Mapping[str, str]] = {
    "operation_id": "STRING",
    "table_name": "STRING",
    "snapshot_id": "BIGINT",
    "dag_id": "STRING",
    "run_id": "STRING",
    "task_id": "STRING",
    "map_index": "INT",
    "statement": "STRING",
    "operation": "STRING",
    "clause": "INT",
    "row_key": "STRING",
    "old_values": "STRING",
    "new_values": "STRING",
}
# Of these, the ones that always have a value.
_FILLED: Final = frozenset(("operation_id", "table_name", "snapshot_id", "statement", "operation"))

_PARTS: Final = 2


@dataclass(frozen=True, slots=True)
class SideOutput:
    """``rows`` rows for ``table``, kept in files below ``folder`` of the workspace."""

    kind: SideKind
    table: str
    folder: str
    rows: int


def require_side_table(parameter: str, table: str, target: str = "") -> None:
    """Refuse a name that is none of a table beside the target, which is given folded.

    Raises:
        RequestError: REQUEST_INVALID, naming the parameter.
    """
    parts = name_parts(table)
    require(
        len(parts) == _PARTS and all(part.strip() for part in parts),
        parameter,
        f"{table!r} is not database.table",
        "Name a table of the statement's own connection, as database.table.",
    )
    require(
        folded_name(table) != target,
        parameter,
        "is the table that the statement changes",
        "Name another table of the same connection.",
    )


def folded_name(table: str) -> str:
    """The same text for all names that may be the same table, as ``TableName.folded``."""
    return ".".join(name_parts(table)).lower().removesuffix(f"{BRANCH_MARK}{MAIN_BRANCH}")


def side_operation(operation_id: str, kind: SideKind) -> str:
    """The id of the operation that inserts what another operation leaves."""
    return f"{operation_id}-{kind}"


def side_property(outputs: Iterable[SideOutput]) -> dict[str, str]:
    """The property that names what a statement leaves elsewhere, if anything."""
    documents = [codec.encode(each) for each in outputs]
    return {SIDE_OUTPUTS: json.dumps(documents)} if documents else {}


def recorded_side_outputs(properties: Mapping[str, str]) -> tuple[SideOutput, ...]:
    """What the operation of a snapshot leaves elsewhere.

    Raises:
        RequestError: REQUEST_INVALID if another version of this project wrote the properties.
    """
    try:
        documents = json.loads(properties.get(SIDE_OUTPUTS, "[]"))
    except (ValueError, RecursionError) as error:
        raise codec.invalid(SIDE_OUTPUTS, f"not a JSON document: {error}") from None
    if not isinstance(documents, list):
        raise codec.invalid(SIDE_OUTPUTS, "is not a list")
    return tuple(codec.decode(SideOutput, each, SIDE_OUTPUTS) for each in documents)


def require_audit_columns(table: str, columns: Mapping[str, tuple[str, bool]]) -> None:
    """Check that a table has the columns of an audit.

    ``columns``: the types by name, and whether they can be NULL.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, TYPE_MISMATCH.
    """
    known = {name.lower(): each for name, each in columns.items()}
    remedy = f"An audit table is one of: {table_text(table, AUDIT_COLUMNS)}"
    for name, wanted in AUDIT_COLUMNS.items():
        if name not in known:
            problem = f"audit_table: {table} has no column {name}."
            raise AnalysisError(ErrorCode.COLUMN_NOT_FOUND, problem, remedy)
        kind, nullable = known[name]
        if kind.upper() != wanted:
            problem = f"audit_table: column {name} of {table} is {kind}, and has to be {wanted}."
            raise AnalysisError(ErrorCode.TYPE_MISMATCH, problem, remedy)
        if not nullable and name not in _FILLED:
            problem = f"audit_table: column {name} of {table} is NOT NULL, and has to take NULL."
            raise AnalysisError(ErrorCode.TYPE_MISMATCH, problem, remedy)


def table_text(table: str, columns: Mapping[str, str]) -> str:
    """The CREATE TABLE statement of a table with these columns."""
    parts = ", ".join(f"{quote(name)} {kind}" for name, kind in columns.items())
    return f"CREATE TABLE {table} ({parts})"
