"""Names that branches of Paimon tables need, and what branches have no use for."""

from __future__ import annotations

import re
from typing import Final

from spark_jobs.contract.maintenance import (
    BranchStatement,
    CherryPickSpec,
    CreateBranchSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.errors import NotSupportedError

# Properties of a snapshot that publishes a branch: its name, and the manifest list by which the
# snapshot that was its head is known.
PUBLISHED_BRANCH: Final = "merge.published-branch"
PUBLISHED_HEAD: Final = "merge.published-head"
_TAG: Final = "merge-branch-"
_PUBLISHED: Final = "-published-"
_OF_PUBLICATION: Final = re.compile(rf"{_PUBLISHED}[0-9]+")


def base_tag(branch: str) -> str:
    """The tag that keeps the files of the snapshot where a branch begins."""
    return f"{_TAG}{branch}"


def published_tag(branch: str, snapshot_id: int) -> str:
    """The tag that keeps the files that a table got from a branch as snapshot ``snapshot_id``."""
    return f"{base_tag(branch)}{_PUBLISHED}{snapshot_id}"


def is_tag_of(branch: str, tag: str) -> bool:
    """Whether a tag is kept for a branch, and goes with it."""
    rest = tag.removeprefix(base_tag(branch))
    return rest != tag and (not rest or _OF_PUBLICATION.fullmatch(rest) is not None)


def refuse_statement(statement: BranchStatement) -> None:
    """Refuse what branches of Paimon tables do not have.

    Raises:
        NotSupportedError: names the statement or the parameter.
    """
    if isinstance(statement, CherryPickSpec | SetCurrentSnapshotSpec):
        raise refusal(statement)
    if not isinstance(statement, CreateBranchSpec):
        return
    for name in ("retention", "max_snapshot_age", "min_snapshots_to_keep"):
        if getattr(statement, name) is not None:
            reason = "a branch stays until it is deleted, and expires by the table's options"
            raise _refused(name, reason, f"Leave {name} out, and delete the branch in time.")
    if "$" in statement.branch or _OF_PUBLICATION.search(statement.branch):
        reason = f"names with $ or with {_PUBLISHED} and a number have another meaning"
        raise _refused("branch", reason, "Choose another name.")


def refusal(statement: CherryPickSpec | SetCurrentSnapshotSpec) -> NotSupportedError:
    """The error for a statement that no table of Paimon supports."""
    if isinstance(statement, CherryPickSpec):
        reason = "every snapshot is on a branch, and none is staged"
        return _refused(statement.kind, reason, "Publish a branch by FastForwardOperator.")
    reason = "snapshots have numbers, and the latest one can only be taken back"
    return _refused(statement.kind, reason, "Use RollbackOperator.")


def _refused(what: str, reason: str, remedy: str) -> NotSupportedError:
    return NotSupportedError(f"{what}: of a Paimon table, {reason}.", remedy)
