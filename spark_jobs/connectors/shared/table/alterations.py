"""What ALTER TABLE and DROP TABLE have in common in all formats. Driver only."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

from spark_jobs.contract import codec
from spark_jobs.contract.alter_table import (
    AlteredPart,
    AlterTableReport,
    AlterTableSpec,
    TableChange,
)
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import TableName
from spark_jobs.contract.secret_names import holds_secret, may_be_secret_name
from spark_jobs.contract.sql_text import RESERVED_PREFIX
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.errors import (
    AnalysisError,
    CatalogError,
    CommitError,
    ErrorCode,
    JobError,
    NotSupportedError,
)
from spark_jobs.spi.alterations import ChangeNote

# The parts of a definition: what each is called, and how it is now, by what tells it apart.
Described = Mapping[Hashable, tuple[str, str]]

_HIDDEN: Final = "***"
# In bytes of JSON: with it, a note of the change is readable.
_LONGEST_REPORT: Final = 40_000
_TABLE: Final = "table"


def find_name(name: str, names: Iterable[str]) -> int | None:
    """The index of the first of ``names`` that equals ``name``, ignoring case; None: none does."""
    lowered = name.lower()
    return next((i for i, each in enumerate(names) if each.lower() == lowered), None)


def no_column(table: TableName, path: Sequence[str], known: Sequence[str]) -> AnalysisError:
    """The error of a column, or nested field, that the table does not have."""
    name = ".".join(path)
    where = "There are" if known else "There is nothing in it"
    return AnalysisError(
        ErrorCode.COLUMN_NOT_FOUND,
        f"{table} has no column {name}",
        f"{where}: {', '.join(known)}." if known else f"{where}: it is no struct.",
        name=path[-1],
    )


def column_exists(table: TableName, path: Sequence[str], is_now: str) -> AnalysisError:
    """The error of a name that is taken."""
    return AnalysisError(
        ErrorCode.COLUMN_EXISTS,
        f"{table} has a column {'.'.join(path)} already: {is_now}",
        "Take another name; with if_not_exists, a column that is added and is there is left alone.",
        name=path[-1],
    )


def not_widened(table: TableName, path: Sequence[str], before: str, wanted: str) -> AnalysisError:
    """The error of a type that does not hold the values of the present one."""
    return AnalysisError(
        ErrorCode.TYPE_MISMATCH,
        f"{'.'.join(path)} of {table} is {before}, which cannot become {wanted}",
        "Types are only widened: INT to BIGINT, FLOAT to DOUBLE, DECIMAL to more digits before "
        "the point. Else add a column, and fill it by an UPDATE.",
        name=path[-1],
    )


def not_null(table: TableName, path: Sequence[str]) -> NotSupportedError:
    """The refusal to make a column NOT NULL whose rows may have NULLs."""
    return NotSupportedError(
        f"{'.'.join(path)} of {table} admits NULL: its rows may have some, so it cannot become "
        "NOT NULL.",
        "Create a table with the column as NOT NULL, and insert the rows there.",
    )


def refuse_reserved_prefix(table: TableName, name: str) -> None:
    """Refuse a name of the engine's own."""
    if name.lower().startswith(RESERVED_PREFIX):
        raise NotSupportedError(
            f"{table}: names of columns that begin with {RESERVED_PREFIX} are reserved.",
            f"Take another name than {name}.",
        )


def property_text(name: str, value: str) -> str:
    """The value of a property for people, who must see no secret."""
    return _HIDDEN if may_be_secret_name(name) or holds_secret(value) else value


def change_each(spec: AlterTableSpec, change: Callable[[TableChange], None]) -> None:
    """Make the changes of a statement, one after the other.

    Raises:
        JobError: raised by ``change``, with the number of the change.
    """
    for number, each in enumerate(spec.changes):
        try:
            change(each)
        except JobError as error:
            place = f"changes[{number}]" if len(spec.changes) > 1 else each.kind
            raise error.within(place) from None


def store_noted(note: ChangeNote, noted: Mapping[str, Any], store: Callable[[], bool]) -> bool:
    """Note what ``store`` is about to store; False if others have changed the table meanwhile.

    The note goes if it is certain that nothing was stored.

    Raises:
        JobError: raised by ``store``.
    """
    note.write(noted)
    try:
        is_stored = store()
    except JobError as error:
        if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
            note.remove()
        raise
    if not is_stored:
        note.remove()
    return is_stored


def alter_report(before: Described, after: Described) -> AlterTableReport:
    """What differs between two descriptions of a table, in the order of the latter."""
    gone = [(key, each) for key, each in before.items() if key not in after]
    parts = [AlteredPart(what, text, None) for _, (what, text) in gone]
    for key, (what, text) in after.items():
        was = before[key][1] if key in before else None
        if was != text:
            parts.append(AlteredPart(what, was, text))
    return _bounded(parts)


def order_of_names(before: Sequence[str], after: Sequence[str]) -> tuple[str, str] | None:
    """Names that both have, in the order of each; None if it is the same."""
    was = [each for each in before if each in after]
    now = [each for each in after if each in before]
    return None if was == now else (", ".join(was), ", ".join(now))


def _bounded(parts: Sequence[AlteredPart]) -> AlterTableReport:
    room, reported = _LONGEST_REPORT, []
    for part in parts:
        room -= len(json.dumps(codec.encode(part)))
        if room < 0:
            break
        reported.append(part)
    return AlterTableReport(tuple(reported), len(parts) - len(reported))


def drop_noted(
    name: TableName,
    spec: DropTableSpec,
    identity: Callable[[], str | None],
    drop: Callable[[], None],
    note: ChangeNote,
) -> bool:
    """Whether the table was dropped by this operation; raises as ``ConnectorAlterations``.

    ``identity`` tells the table that has the name now from others that had it or will have it;
    None: there is none. ``drop`` raises TimeoutError if nobody knows whether it did.
    """
    if name.branch != MAIN_BRANCH:
        raise NotSupportedError(
            f"{name} is a branch, which DROP TABLE does not drop.",
            "Use DeleteBranchOperator, or the engine that made the branch.",
        )
    noted, current_id = note.read(), identity()
    if noted is not None and current_id != noted[_TABLE]:
        # An earlier try has dropped it; what has the name now is of somebody else.
        return True
    if current_id is None:
        if spec.if_exists:
            return False
        raise CatalogError(
            ErrorCode.TABLE_NOT_FOUND,
            f"Table {name} does not exist.",
            "Check the name, or write DROP TABLE IF EXISTS.",
        )
    note.write({_TABLE: current_id})
    try:
        drop()
    except TimeoutError as error:
        raise CommitError(
            ErrorCode.COMMIT_OUTCOME_UNKNOWN,
            f"It is not known whether {name} was dropped: {error}",
            "Run the statement again: it looks for the table that it was about to drop.",
        ) from error
    return True
