"""The data files that only one of two snapshots has, and whether they tell which rows differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_FORMAT = "parquet"


@dataclass(frozen=True, slots=True)
class RowFile:
    """A data file: its path or URI, its format, its size in bytes, and its number of rows."""

    location: str
    format: str
    size: int
    rows: int


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column as data files have it; without ``field_id``, they are known by name."""

    name: str
    type: str
    field_id: int | None = None


@dataclass(frozen=True, slots=True)
class DifferingFiles:
    """The files of one partition, ``name``, that are ``removed`` from a snapshot or ``added``.

    Every row of the partition that differs is in one of them, and the rows of each file are those
    that a reader finds, unless there is an ``obstacle``: the reason why that is not so.
    """

    name: str
    removed: tuple[RowFile, ...]
    added: tuple[RowFile, ...]
    obstacle: str = ""


def obstacle_of(files: Iterable[RowFile], folder: str) -> str:
    """Why files of a table in ``folder`` are not opened; empty: they are.

    Metadata may name any file at all, so that only what lies in the table's folder is opened.
    """
    root = f"{folder.rstrip('/')}/"
    for file in files:
        below = file.location.removeprefix(root)
        if below == file.location or ".." in below.split("/"):
            return "A file lies outside of the table's folder."
        if file.format.lower() != _FORMAT:
            return f"Files of the format {file.format[:20].lower()} are not read here."
    return ""
