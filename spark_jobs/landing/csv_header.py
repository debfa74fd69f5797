"""Maps the fields of a record to the wanted columns. Imported by executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.landing.records import Column, Problem, shown


@dataclass(frozen=True, slots=True)
class Header:
    """The fields of a file's records, and which of them are the wanted columns.

    ``fields`` are generated names of the fields, ``indexes`` the positions of the wanted columns.
    ``seen`` are the names of the file's columns; empty if columns are taken by position.
    """

    fields: list[str]
    indexes: tuple[int, ...]
    seen: frozenset[str] = frozenset()

    @property
    def wanted_fields(self) -> list[str]:
        """The generated names of the wanted columns."""
        return [self.fields[index] for index in self.indexes]

    @classmethod
    def without(cls, wanted: Sequence[Column]) -> Header:
        """The header of records that have exactly the wanted columns, in order."""
        return cls([f"f{i}" for i in range(len(wanted))], tuple(range(len(wanted))))

    @classmethod
    def of(cls, names: Sequence[str], wanted: Sequence[Column], location: str) -> Header:
        """The header with columns by name, ignoring case; ``location`` says where it stands.

        Raises:
            CatalogError: SOURCE_UNREADABLE; a wanted column is missing, or occurs twice.
        """
        positions = [_positions(column.name, names) for column in wanted]
        for column, occurrences in zip(wanted, positions, strict=True):
            if len(occurrences) != 1:
                raise _wrong(location, column.name, names, len(occurrences))
        indexes = tuple(found[0] for found in positions)
        return cls([f"f{i}" for i in range(len(names))], indexes, frozenset(names))

    @staticmethod
    def unreadable(file: str, problem: Problem) -> CatalogError:
        """The error for a header that cannot be parsed as a record."""
        return CatalogError(
            ErrorCode.SOURCE_UNREADABLE, f"{file}: the header {problem.reason}.", problem.remedy
        )

    def ragged(self, count: int) -> Problem:
        """What is wrong with a record of ``count`` fields."""
        expected = len(self.fields)
        whose = "the header" if self.seen else "the source's schema"
        return Problem(
            f"has {count} field{'s' if count > 1 else ''} where {whose} has {expected}",
            "Correct the file or its options sep, quote and escape; "
            "on_bad_rows='quarantine' sets such records aside.",
        )


def _positions(wanted: str, names: Sequence[str]) -> list[int]:
    """Where a name stands; blanks around names do not count, unless the wanted one has some."""
    lowered = [name.lower() for name in names]
    if wanted == wanted.strip():
        lowered = [name.strip() for name in lowered]
    return [index for index, name in enumerate(lowered) if name == wanted.lower()]


def _wrong(location: str, name: str, names: Sequence[str], count: int) -> CatalogError:
    found = shown(", ".join(names))
    problem = "has no column" if not count else "names twice the column"
    return CatalogError(
        ErrorCode.SOURCE_UNREADABLE,
        f"{location}: the header {problem} {name}; it says {found}.",
        "Correct the file or the source's schema. A file without a header line needs "
        "options={'header': False}; enforceSchema=True takes columns by position."
        f"{blanks_remedy(names)}",
    )


def blanks_remedy(names: Sequence[str]) -> str:
    """What to do about names with blanks around them, behind other remedies."""
    if all(name == name.strip() for name in names):
        return ""
    return (
        " ignoreLeadingWhiteSpace=True and ignoreTrailingWhiteSpace=True leave out the blanks "
        "around names and values."
    )
