"""UNDO of a run: what is asked, and the report on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from spark_jobs.contract.checks import require, require_among

OnRefused = Literal["fail", "skip"]
TableOutcome = Literal["undone", "planned", "unchanged", "refused"]


@dataclass(frozen=True, slots=True)
class UndoRunSpec:
    """Take back everything that a run committed to ``tables``, by one new snapshot of each.

    ``tables`` are names as ``db.table`` or ``db.table$branch_b``; the target is one of them.
    ``on_refused``: with ``fail``, nothing is changed if one of them cannot be undone; with
    ``skip``, the others are undone.
    """

    dag_id: str
    run_id: str
    tables: tuple[str, ...]
    on_refused: OnRefused = "fail"
    kind: ClassVar[str] = "undo_run"

    def __post_init__(self) -> None:
        require(bool(self.dag_id.strip()), "dag_id", "is empty")
        require(bool(self.run_id.strip()), "run_id", "is empty")
        require(bool(self.tables), "tables", "is empty")
        choices = get_args(OnRefused)
        require_among(self.on_refused, choices, "on_refused")


@dataclass(frozen=True, slots=True)
class UndoneCommit:
    """A snapshot of the run that is taken back, with the counts that its statement reported.

    ``committed`` is when, in milliseconds since 1970.
    """

    snapshot_id: int
    committed: int
    operation_id: str
    statement: str
    task_id: str
    map_index: int = -1
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class TableUndo:
    """What an undo did to one table, or would do.

    ``commits`` are those that are taken back, the newest first, up to 100. Of their statements,
    ``inserted`` rows go, ``deleted`` rows come back, and ``updated`` rows get their former values.
    ``files_removed`` counts data files that the run added, ``files_restored`` those that it
    removed, which are copied (``bytes_copied`` with their deletes); ``deletes_restored`` counts
    data files whose marks become what they were. ``snapshot_id`` is the new one. ``oldest`` is the
    oldest snapshot that the table keeps, if earlier ones have expired: commits of the run among
    those cannot be found. ``code`` and ``reason`` say why a table was ``refused``.
    """

    table: str
    outcome: TableOutcome
    commits: tuple[UndoneCommit, ...] = ()
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    files_removed: int = 0
    files_restored: int = 0
    deletes_restored: int = 0
    bytes_copied: int = 0
    snapshot_id: int | None = None
    oldest: int | None = None
    code: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class UndoReport:
    """What an undo did, table by table in the order of its commits."""

    tables: tuple[TableUndo, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether a table was changed, or would be."""
        return any(each.outcome in ("undone", "planned") for each in self.tables)
