"""The exceptions that end tasks, as callbacks see them in ``context["exception"]``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from spark_jobs.contract.result import ErrorInfo

# Error codes by which a guard of a statement says that it tripped, and the parameter that sets it.
GUARDS: Final = {
    "PARTITION_NOT_EXPECTED": "expected_partitions",
    "ROW_OUTSIDE_PARTITION": "partition",
    "SOURCE_EMPTY": "allow_empty",
    "TOO_MANY_BAD_ROWS": "max_bad_rows",
    "TOO_MANY_PARTITIONS": "max_new_partitions",
    "MERGE_TARGET_ROW_MULTIPLE_MATCHES": "cardinality",
    "CHECK_FAILED": "check",
}
# Those that no dry run reports as guards.
_OTHERS: Final = {"SCHEMA_CHANGED": "on_schema_change", "APPROVAL_STALE": "approved"}
# The error of limits and checks of rows, which names the parameter itself.
_NAMING: Final = "GUARD_FAILED"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a statement failed.

    ``code`` is one of docs/errors.md, ``message`` and ``remedy`` are for people. ``retryable``:
    whether a retry may help. ``table`` is the target, ``statement`` the name of one of several;
    ``field`` is the parameter that cannot be used, ``column`` the name that no column has,
    ``guard`` the parameter whose guard tripped, the first of several. Each of these is empty where
    there is none.
    """

    code: str
    message: str
    remedy: str = ""
    retryable: bool = False
    table: str = ""
    statement: str = ""
    field: str = ""
    column: str = ""
    guard: str = ""

    @classmethod
    def of(cls, info: ErrorInfo, table: str = "", statement: str = "") -> Failure:
        """The failure that an error is."""
        places = [each for each in info.places if not each.startswith("task ")]
        return cls(
            info.code,
            info.message,
            info.remedy,
            info.retryable,
            table,
            statement,
            places[0] if places else "",
            "" if info.code == _NAMING else info.name,
            info.name if info.code == _NAMING else {**GUARDS, **_OTHERS}.get(info.code, ""),
        )


class TaskFailure(AirflowException):
    """A task failed; ``failures`` has one entry for each statement that did.

    The attributes of ``Failure`` are those of the first one.
    """

    # A default, for whoever makes one of the text alone, as Airflow's serialisation does.
    def __init__(self, text: str = "", failures: Sequence[Failure] = ()) -> None:
        super().__init__(text)
        self.failures = tuple(failures)

    @property
    def first(self) -> Failure:
        """The failure that came first."""
        return self.failures[0] if self.failures else Failure("INTERNAL_ERROR", str(self))

    @property
    def code(self) -> str:
        """The error code."""
        return self.first.code

    @property
    def table(self) -> str:
        """The target, ``database.table``; empty: none was known."""
        return self.first.table

    @property
    def guard(self) -> str:
        """The parameter whose guard tripped; empty: none did."""
        return self.first.guard

    @property
    def field(self) -> str:
        """The parameter that cannot be used; empty: it is another error."""
        return self.first.field

    @property
    def column(self) -> str:
        """The name that no column has; empty: it is another error."""
        return self.first.column

    @property
    def message(self) -> str:
        """What is wrong, for people."""
        return self.first.message

    @property
    def remedy(self) -> str:
        """What to do, for people."""
        return self.first.remedy


class FinalFailure(TaskFailure, AirflowFailException):
    """A retry would fail again, so that Airflow makes none."""


class PassingFailure(TaskFailure):
    """A retry may help."""


def failure_of(text: str, failures: Sequence[Failure]) -> TaskFailure:
    """The exception with ``text``; it is final if all failures are."""
    may_pass = any(each.retryable for each in failures)
    return (PassingFailure if may_pass else FinalFailure)(text, failures)
