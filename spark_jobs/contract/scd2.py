"""The versions of a slowly changing dimension, type 2, as the source of a MERGE."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, Literal, get_args

from spark_jobs.contract.checks import require, require_among, require_identifier
from spark_jobs.contract.table_versions import CHANGE_TYPE
from spark_jobs.errors import NotSupportedError

HardDeletes = Literal["ignore", "close", "new_record"]
Late = Literal["insert_between", "fail"]
Corrections = Literal["fail", "ignore", "overwrite"]

# The source that an operator makes, and the column that says what becomes of a row of it.
VERSIONS: Final = "merge_versions"
ACTION: Final = "scd2_action"
INSERTED, CLOSED, CORRECTED, REMOVED = "insert", "close", "correct", "remove"


@dataclass(frozen=True, slots=True)
class Scd2Source:
    """How the target's versions change by the rows of ``source``, which stands before it.

    It has a row for each version that changes: the columns of the target, and ``scd2_action``.
    ``keys`` tell things apart; a change of a column in ``tracked`` (None: all others) makes a
    version. ``valid_from``, ``valid_to`` (exclusive), ``current`` and ``deleted`` are columns of
    the target. A row counts from the value of its column ``effective``, or else from ``as_of``, a
    time. ``hard_deletes``: what becomes of a key that ``delete_marker``, a column of the source,
    says is deleted; without one, of a key that the source does not have any more. ``late``: what
    becomes of a row that is older than the newest version of its key. ``corrections``: of a row
    with the time of a version and other values. ``open_end``: ``valid_to`` of versions that are
    valid; None: NULL. ``of_events``: ``source`` has change events (``CdcSource``, each of them); of
    those that a key has at one time, the last counts, and a delete has a time as others have.
    """

    name: str
    source: str
    keys: tuple[str, ...]
    valid_from: str
    valid_to: str
    tracked: tuple[str, ...] | None = None
    current: str | None = None
    deleted: str | None = None
    effective: str | None = None
    as_of: str | None = None
    hard_deletes: HardDeletes = "ignore"
    delete_marker: str | None = None
    late: Late = "fail"
    corrections: Corrections = "fail"
    open_end: str | None = None
    of_events: bool = False
    kind: ClassVar[str] = "scd2"
    is_incremental: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._require_names()
        for place, choices in (
            ("hard_deletes", get_args(HardDeletes)),
            ("late", get_args(Late)),
            ("corrections", get_args(Corrections)),
        ):
            value = getattr(self, place)
            require_among(value, choices, place)
        for place in ("as_of", "open_end"):
            value = getattr(self, place)
            require(
                value is None or _is_time(value),
                place,
                f"{value!r} is no date or time",
                "Write 2026-01-31 or 2026-01-31 12:30:00+00:00.",
            )
        self._require_times()
        require(
            self.hard_deletes != "new_record" or self.deleted is not None,
            "deleted",
            "is missing: a record of a deletion is told by it",
            "Name a BOOLEAN column of the target, or set hard_deletes='close'.",
        )

    def _require_names(self) -> None:
        require(bool(self.keys), "keys", "is empty", "Name the columns of the key.")
        require(
            self.tracked != (), "tracked", "is empty", "Name columns, or leave it out to track all."
        )
        for place in ("keys", "tracked"):
            for index, column in enumerate(getattr(self, place) or ()):
                require_identifier(f"{place}[{index}]", column)
        for place in ("valid_from", "valid_to", "current", "deleted", "effective", "delete_marker"):
            if getattr(self, place) is not None:
                require_identifier(place, getattr(self, place))
        self._require_one_role_each()

    def _require_one_role_each(self) -> None:
        named = [("keys", each) for each in self.keys]
        named += [("tracked", each) for each in self.tracked or ()]
        for place in ("valid_from", "valid_to", "current", "deleted"):
            named += [(place, getattr(self, place))] if getattr(self, place) else []
        roles: dict[str, str] = {}
        for place, name in named:
            other = roles.get(name.lower())
            problem = f"{name} is named by {other}, too"
            require(other is None, place, problem, "Name each column once.")
            roles[name.lower()] = place

    def _require_times(self) -> None:
        for place in ("delete_marker", "as_of") if self.of_events else ():
            require(
                getattr(self, place) is None,
                place,
                "is told by change events themselves",
                "Leave it out; effective names the column that says when an event happened.",
            )
        require(
            not self.of_events or self.effective is not None,
            "effective",
            "is missing: nothing says when an event happened",
            "Name a column of the events, or of their sequence.",
        )
        is_told = self.hard_deletes != "ignore" and self.tells_no_time_of_deletes
        require(
            self.as_of is not None or self.effective is not None,
            "effective",
            "is missing, and so is as_of: nothing says when the rows become valid",
            "Name a column of the source as effective, or set as_of='{{ data_interval_end }}'.",
        )
        require(
            self.as_of is not None or not is_told,
            "as_of",
            "is missing: rows that are gone have no time of their own",
            "Set as_of='{{ data_interval_end }}', or hard_deletes='ignore'.",
        )
        if self.effective is None and self.late != "fail":
            raise NotSupportedError(
                "late: 'insert_between' is for rows that have times of their own (effective). What "
                "a source of another time says between two runs, later runs may have denied.",
                "Leave late out: such a run fails. Or name the column effective.",
            )

    @property
    def has_changes(self) -> bool:
        """Whether the rows say what became of them, as those of ``changes_source`` do."""
        return (self.delete_marker or "").lower() == CHANGE_TYPE

    @property
    def tells_deletes(self) -> bool:
        """Whether rows of the source say that a key is deleted."""
        return self.of_events or self.delete_marker is not None

    @property
    def finds_absent(self) -> bool:
        """Whether a key that the source does not have is deleted."""
        return self.hard_deletes != "ignore" and not self.tells_deletes

    @property
    def tells_no_time_of_deletes(self) -> bool:
        """Whether deletes are of ``as_of``: rows that are gone do not tell when."""
        return not self.tells_deletes or self.has_changes


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True
