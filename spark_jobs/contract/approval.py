"""The ticket of a dry run: what a person approves, so that the real run does that or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spark_jobs.contract.checks import require
from spark_jobs.contract.sources import OutsideSource, Source
from spark_jobs.errors import CommitError, ErrorCode, NotSupportedError

VERSION = 1


@dataclass(frozen=True, slots=True)
class SourceEvidence:
    """What a source was: a table's snapshot, or the number, bytes and digest of its files.

    ``digest``: SHA-256 (hex) of the files' names, sizes and versions, or of what only that snapshot
    has. ``is_known``: they tell all that decides about its rows.
    """

    snapshot_id: int | None = None
    files: int = 0
    bytes: int = 0
    digest: str = ""
    is_known: bool = True

    def __str__(self) -> str:
        if self.files:
            return f"{self.files} files of {self.bytes:,} bytes"
        return "no snapshot" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a dry run looked at, and what it found.

    ``digests`` are SHA-256 (hex) by the parts of the request: ``statement``, ``sources``,
    ``options``, ``guards``. ``columns`` is that of the table's columns and partition fields,
    ``base_digest`` of what only the base snapshot has, ``evolved`` of the columns once
    ``schema_changes`` are made, if there are any.
    ``inserted``, ``updated`` and ``deleted`` count the rows that would change.
    """

    operation_id: str
    target: str
    digests: Mapping[str, str]
    columns: str
    base_snapshot_id: int | None = None
    base_digest: str = ""
    evolved: str = ""
    schema_changes: tuple[str, ...] = ()
    sources: Mapping[str, SourceEvidence] = field(default_factory=dict)
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    version: int = VERSION

    def __post_init__(self) -> None:
        require(
            self.version == VERSION,
            "approved.version",
            f"the ticket has the version {self.version}, not {VERSION}",
            "Run the dry run again with this release.",
        )

    def require_same(self, digests: Mapping[str, str], target: str) -> None:
        """Check that a request, by the ``digests`` of its parts, is for the same work.

        Raises:
            CommitError: APPROVAL_STALE, naming what differs.
        """
        if target != self.target:
            raise stale(f"the ticket is for {self.target}, the task for {target}")
        names = sorted({*digests, *self.digests})
        different = [each for each in names if digests.get(each) != self.digests.get(each)]
        if different:
            raise stale(f"other than in the dry run: {', '.join(different)}")


def require_approvable(sources: Iterable[Source]) -> None:
    """Refuse sources of which nothing tells whether they have the same rows as in a dry run.

    Raises:
        NotSupportedError: names the source.
    """
    for source in sources:
        if isinstance(source, OutsideSource):
            raise NotSupportedError(
                f"approved: source {source.name} is of the kind {source.kind}, and nothing tells "
                "whether it has the same rows as in the dry run.",
                "Store its rows in a table by a task before the dry run, and read that "
                "(table_source); or leave approved out.",
            )


def stale(problem: str, untouched: str = "Nothing was published.") -> CommitError:
    """The error for work that is not what was approved; ``untouched``: what was not done."""
    return CommitError(
        ErrorCode.APPROVAL_STALE,
        f"What was approved is not what would be done: {problem.rstrip('.')}. {untouched}",
        "Run the dry run again, and approve that.",
    )
