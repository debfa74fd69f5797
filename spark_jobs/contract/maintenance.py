"""Maintenance statements, which do not change a table's rows, and their reports.

Limits are durations (``7 d``, counted back from the job's time) or timestamps with an offset.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

from spark_jobs.contract.checks import require
from spark_jobs.contract.durations import parse_duration, parse_limit
from spark_jobs.contract.table_name import MAIN_BRANCH

# On Paimon tables, a tag is stored as a file that has its name.
_NAME: Final = re.compile(r"[^/\\\x00-\x1f\x7f\ud800-\udfff]{1,200}")


@dataclass(frozen=True, slots=True)
class ExpireSnapshotsSpec:
    """Expire the oldest snapshots: those beyond the latest ``retain_max``, and older ones.

    The latest ``retain_min`` always stay; of the others, those stay that were still the latest at
    ``older_than``, or became it later. None: the table's option (``snapshot.num-retained.max``,
    ``snapshot.num-retained.min``, ``snapshot.time-retained``), else Paimon's default: unlimited,
    10, 1 hour. At most ``max_deletes`` expire; None: all others. ``clean_expired_metadata``:
    schemas and partition specs of an Iceberg table go, too, if nothing reaches them.
    """

    retain_max: int | None = None
    retain_min: int | None = None
    older_than: str | None = None
    max_deletes: int | None = None
    clean_expired_metadata: bool = False
    kind: ClassVar[str] = "expire_snapshots"

    def __post_init__(self) -> None:
        for name in ("retain_max", "retain_min", "max_deletes"):
            value = getattr(self, name)
            require(value is None or value > 0, name, f"{value} is not positive")
        if self.retain_max is not None and self.retain_min is not None:
            require(
                self.retain_min <= self.retain_max,
                "retain_min",
                f"{self.retain_min} is more than retain_max, {self.retain_max}",
            )
        if self.older_than is not None:
            _require_parsed("older_than", self.older_than, _limit)


@dataclass(frozen=True, slots=True)
class RemoveOrphanFilesSpec:
    """Remove files that no snapshot, tag or branch knows and that were stored before a limit.

    Younger files may belong to a commit in progress.
    """

    older_than: str = "1 d"
    kind: ClassVar[str] = "remove_orphan_files"

    def __post_init__(self) -> None:
        _require_parsed("older_than", self.older_than, _limit)


@dataclass(frozen=True, slots=True)
class CreateTagSpec:
    """Give a snapshot a name that keeps it readable; ``snapshot_id`` None: the latest.

    ``retention``: a duration after which the tag may be deleted; None: the table's option
    (``tag.default-time-retained``), else the tag stays until it is deleted.
    """

    tag: str
    snapshot_id: int | None = None
    retention: str | None = None
    if_not_exists: bool = False
    kind: ClassVar[str] = "create_tag"

    def __post_init__(self) -> None:
        _require_tag("tag", self.tag)
        _require_id("snapshot_id", self.snapshot_id)
        if self.retention is not None:
            _require_parsed("retention", self.retention, parse_duration)


@dataclass(frozen=True, slots=True)
class DeleteTagSpec:
    """Delete a tag, and what only it kept; ``tag`` None: all whose retention is over."""

    tag: str | None
    if_exists: bool = False
    kind: ClassVar[str] = "delete_tag"

    def __post_init__(self) -> None:
        if self.tag is not None:
            _require_tag("tag", self.tag)


@dataclass(frozen=True, slots=True)
class RollbackSpec:
    """Make an earlier snapshot the latest one; those after it, and tags of them, are dropped.

    Exactly one of ``snapshot_id`` and ``tag`` is given. Without ``force``, only commits of the same
    DAG are dropped, and none that a tag or a running operation needs.
    """

    snapshot_id: int | None = None
    tag: str | None = None
    force: bool = False
    kind: ClassVar[str] = "rollback"

    def __post_init__(self) -> None:
        require(
            (self.snapshot_id is None) != (self.tag is None),
            "snapshot_id",
            "give either a snapshot or a tag to roll back to",
        )
        _require_id("snapshot_id", self.snapshot_id)
        if self.tag is not None:
            _require_tag("tag", self.tag)


@dataclass(frozen=True, slots=True)
class CreateBranchSpec:
    """Begin a branch at a snapshot or a tag; neither: at the head of the target's branch.

    ``retention``: a duration after which the branch may be deleted, by the age of its head. Of its
    snapshots, those younger than ``max_snapshot_age`` stay, and the latest
    ``min_snapshots_to_keep``. None: as the table says.
    """

    branch: str
    snapshot_id: int | None = None
    tag: str | None = None
    retention: str | None = None
    max_snapshot_age: str | None = None
    min_snapshots_to_keep: int | None = None
    if_not_exists: bool = False
    kind: ClassVar[str] = "create_branch"

    def __post_init__(self) -> None:
        _require_branch("branch", self.branch)
        _require_id("snapshot_id", self.snapshot_id)
        if self.tag is not None:
            _require_tag("tag", self.tag)
            require(self.snapshot_id is None, "tag", "give a snapshot or a tag, not both")
        for name in ("retention", "max_snapshot_age"):
            _require_time(name, getattr(self, name))
        least = self.min_snapshots_to_keep
        require(least is None or least > 0, "min_snapshots_to_keep", f"{least} is not positive")


@dataclass(frozen=True, slots=True)
class DeleteBranchSpec:
    """Delete a branch; its snapshots stay until they expire."""

    branch: str
    if_exists: bool = False
    kind: ClassVar[str] = "delete_branch"

    def __post_init__(self) -> None:
        _require_branch("branch", self.branch)


@dataclass(frozen=True, slots=True)
class FastForwardSpec:
    """Move the target's branch forward to where ``to``, another branch or a tag, is."""

    to: str
    kind: ClassVar[str] = "fast_forward"

    def __post_init__(self) -> None:
        _require_name("to", self.to, "branch")


@dataclass(frozen=True, slots=True)
class SetCurrentSnapshotSpec:
    """Move the target's branch to any snapshot of the table, or to that of a tag.

    Without ``force``, it leaves only commits of the same DAG behind.
    """

    snapshot_id: int | None = None
    tag: str | None = None
    force: bool = False
    kind: ClassVar[str] = "set_current_snapshot"

    def __post_init__(self) -> None:
        require(
            (self.snapshot_id is None) != (self.tag is None),
            "snapshot_id",
            "give either a snapshot or a tag",
        )
        _require_id("snapshot_id", self.snapshot_id)
        if self.tag is not None:
            _require_tag("tag", self.tag)


@dataclass(frozen=True, slots=True)
class CherryPickSpec:
    """Publish a staged snapshot on the target's branch, by its id or its ``wap.id``."""

    snapshot_id: int | None = None
    wap_id: str | None = None
    kind: ClassVar[str] = "cherry_pick"

    def __post_init__(self) -> None:
        require(
            (self.snapshot_id is None) != (self.wap_id is None),
            "snapshot_id",
            "give either a snapshot or a wap_id",
        )
        _require_id("snapshot_id", self.snapshot_id)
        require(self.wap_id is None or bool(self.wap_id.strip()), "wap_id", "is empty")


BranchStatement = (
    CreateBranchSpec | DeleteBranchSpec | FastForwardSpec | SetCurrentSnapshotSpec | CherryPickSpec
)
MaintenanceStatement = (
    ExpireSnapshotsSpec
    | RemoveOrphanFilesSpec
    | CreateTagSpec
    | DeleteTagSpec
    | RollbackSpec
    | BranchStatement
)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a tag, a branch, a consumer or an operation keeps from being removed.

    ``by`` names it (``tag nightly``, ``branch b``, ``consumer c``, ``operation <id>``).
    ``snapshots`` counts those it keeps from expiring, ``files`` the data files that it keeps, alone
    or with others, although their snapshots expire.
    """

    by: str
    snapshots: int = 0
    files: int = 0


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """What a maintenance statement did to a table, or would do.

    ``snapshots`` and ``tags`` (with branches) count what was dropped, or left behind by a branch
    that moved; ``data_files``, ``index_files`` and ``manifests`` (with manifest lists and
    statistics) count removed files, ``leftovers`` removed folders of temporary files that killed
    jobs left in the workspace. ``bytes_removed`` is the size of all these; for the table's files as
    its metadata states it. ``files`` names up to 1,000 orphan files, relative to the table; other
    files are not named. ``kept`` has the first 100 reasons, by name. ``earliest_snapshot_id`` and
    ``latest_snapshot_id`` are those afterwards, ``snapshot_id`` is that of a new tag or branch, or
    of the new head of a branch. ``snapshots_left``: how many more may expire, but stay because of
    ``max_deletes``. ``schemas`` and ``partition_specs`` count those that were removed.
    """

    snapshots: int = 0
    tags: int = 0
    data_files: int = 0
    index_files: int = 0
    manifests: int = 0
    leftovers: int = 0
    bytes_removed: int = 0
    earliest_snapshot_id: int | None = None
    latest_snapshot_id: int | None = None
    snapshot_id: int | None = None
    kept: tuple[Kept, ...] = ()
    files: tuple[str, ...] = ()
    snapshots_left: int = 0
    schemas: int = 0
    partition_specs: int = 0

    @property
    def changes(self) -> bool:
        """Whether the statement changed, or would change, anything."""
        dropped = (self.snapshots, self.tags, self.schemas, self.partition_specs)
        removed = (self.data_files, self.index_files, self.manifests, self.leftovers)
        return any(dropped) or any(removed) or self.snapshot_id is not None


def _limit(text: str) -> datetime:
    return parse_limit(text, datetime.now(UTC))


def _require_parsed(name: str, text: str, parse: Callable[[str], Any]) -> None:
    problem = ""
    try:
        parse(text)
    except ValueError as error:
        problem = str(error)
    require(not problem, name, f"{problem}")


def _require_id(name: str, value: int | None) -> None:
    require(value is None or value > 0, name, f"{value} is not the id of a snapshot")


def _require_time(name: str, text: str | None) -> None:
    """Require a duration that is more than nothing, or None."""
    if text is not None:
        _require_parsed(name, text, parse_duration)
        require(parse_duration(text) > timedelta(), name, f"{text!r} is no time at all")


def _require_branch(name: str, value: str) -> None:
    _require_name(name, value, "branch")
    require(
        value != MAIN_BRANCH,
        name,
        f"{MAIN_BRANCH} is the branch that every table has",
        "Name another one.",
    )


def _require_tag(name: str, value: str) -> None:
    _require_name(name, value, "tag")


def _require_name(name: str, value: str, kind: str) -> None:
    fits = _NAME.fullmatch(value) is not None and bool(value.strip())
    require(fits, name, f"{value!r} is not the name of a {kind}")
    require(
        not value.isdecimal(),
        name,
        f"{value!r} is a number, which engines take for the id of a snapshot",
        "Add a letter, such as v7.",
    )
