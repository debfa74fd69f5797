"""What columns of each type may do in files of each format: what the page says and tests run.

Whatever no rule refuses is supported; ``test_type_matrix.py`` runs both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.judge.type_values import KINDS, Kind

FORMATS = ("parquet", "orc", "avro")


class Role(StrEnum):
    """What a column is to a statement; the value is a heading of the page."""

    KEY = "ON"
    CONDITION = "condition"
    ASSIGNED = "assigned"
    CARRIED = "carried"
    NESTED = "nested"
    PARTITION = "partition"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Cell:
    """A type (a line of ``KINDS``) in a role, in files of a format."""

    line: str
    role: Role
    file_format: str


@dataclass(frozen=True, slots=True)
class Rule:
    """Cells with a note on the page: they are refused, or supported but for some values.

    ``message`` is a regular expression for the error of ``code``, where ``{column}`` is the column
    and ``{type}`` the name of its type. ``by_paimon``: Paimon's Java library refuses to create the
    table. ``values`` are pairs of a type and a value that is refused, in SQL for partitions.
    """

    name: str
    note: str
    applies: Callable[[Cell], bool]
    message: str = ""
    code: str = "NOT_SUPPORTED"
    by_paimon: bool = False
    values: tuple[tuple[Any, Any], ...] = ()


_NEVER_READ = ("TIME", "VARIANT", "MULTISET")
_COLLECTIONS = ("ARRAY", "MAP", "ROW", "MULTISET")
_BYTES = ("BINARY", "VARBINARY", "BYTES")
_SECOND = 1_000_000_000


def _is_fine(line: str) -> bool:
    return line.startswith("TIMESTAMP") and "(7)" in line


def _is_local(line: str) -> bool:
    return line.startswith("TIMESTAMP_LTZ")


# The first rule that applies to a cell refuses it.
REFUSALS = (
    Rule(
        "not in Paimon",
        "Paimon 1.4 does not create such tables.",
        lambda cell: (
            (cell.line == "VECTOR" and cell.file_format != "avro")
            or (cell.line == "VARIANT" and cell.file_format != "parquet")
            or (_is_fine(cell.line) and cell.file_format == "avro")
            or (cell.role is Role.PARTITION and cell.line in (*_COLLECTIONS, "BLOB"))
        ),
        r"is unsupported|Unsupported (to|type)|can not be part of partition keys|Avro does not",
        by_paimon=True,
    ),
    Rule(
        "not in Spark",
        "Spark's reader has no such type. A table with such a column is refused, whatever the "
        "statement does.",
        lambda cell: cell.line in (*_NEVER_READ, "BLOB", "VECTOR"),
        r"Column {column} is of Paimon's type {type}, which Spark cannot read\.",
    ),
    Rule(
        "partition key",
        "The directory of a partition would depend on the writer's time zone, or the value has no "
        "spelling that all engines share.",
        lambda cell: cell.role is Role.PARTITION and (_is_local(cell.line) or cell.line in _BYTES),
        r"is partitioned by {column} of type {type}: ",
    ),
    Rule(
        "nanoseconds",
        "Java stores these in parquet as INT96, which pyarrow writes for all timestamps of a file "
        "or for none, and Java reads the form that pyarrow prefers (INT64 nanoseconds) as another "
        "point in time. A target or source table with such a column is refused, even if the "
        "statement does not use the column.",
        lambda cell: _is_fine(cell.line),
        r"[Cc]olumn {column}\b.*precision 7 to 9|finer than microseconds in column {column}\b|"
        r"TIMESTAMP WITH LOCAL TIME ZONE in column {column}\b",
    ),
    Rule(
        "local time zone in ORC",
        "Java stores these in ORC in the writer's time zone and reads them in the reader's. A file "
        "with such a column is refused, even if the statement does not use it.",
        lambda cell: cell.file_format == "orc" and _is_local(cell.line),
        r"an ORC file with TIMESTAMP WITH LOCAL TIME ZONE in column {column}\b",
    ),
    Rule(
        "nested in ORC",
        "Nested timestamps in ORC have no statistics that show which years they are from.",
        lambda cell: (
            cell.file_format == "orc"
            and cell.role is Role.NESTED
            and cell.line.startswith("TIMESTAMP")
        ),
        r"statistics do not show that all timestamps in column {column} are from the years",
    ),
    Rule(
        "maps are not compared",
        "Spark compares no maps (`TYPE_MISMATCH`). Compare elements of theirs, or `map_entries`.",
        lambda cell: cell.line == "MAP" and cell.role is Role.KEY,
        r"does not support ordering on type",
        code="TYPE_MISMATCH",
    ),
)
LIMITS = (
    Rule(
        "years in ORC",
        "A file is refused unless its statistics show that all its timestamps are from the years "
        "1970 to 2261: Java and pyarrow read older ones differently if the writer was in another "
        "time zone than UTC, and pyarrow wraps later ones around without an error.",
        lambda cell: cell.file_format == "orc" and cell.line.startswith("TIMESTAMP("),
        r"statistics do not show that all timestamps in column {column} are from the years",
        values=(
            ("TIMESTAMP(6)", -5_000_000_000 * _SECOND),
            ("TIMESTAMP(3)", 9_223_400_000 * _SECOND),
        ),
    ),
    Rule(
        "partition of numbers",
        "New rows only in partitions of 0 and of numbers from 0.001 to below 10,000,000 (and their "
        "negatives): the digits with which Java names others changed with Java 19.",
        lambda cell: cell.role is Role.PARTITION and cell.line in ("FLOAT", "DOUBLE"),
        r"{column} = .* cannot be a partition: Java versions spell it differently",
        values=(
            ("FLOAT", "CAST('NaN' AS FLOAT)"),
            ("DOUBLE", "-0.0D"),
            ("DOUBLE", "1E7D"),
        ),
    ),
    Rule(
        "blank partition",
        "No new rows in partitions whose text is all blanks with U+0085, U+00A0, U+2007 or U+202F "
        "among them: only pypaimon treats those as blank.",
        lambda cell: cell.role is Role.PARTITION and cell.line in ("CHAR", "VARCHAR", "STRING"),
        r"{column} = .* cannot be a partition: engines differ in whether it is blank",
        values=(("CHAR(1)", "'\u00a0'"), ("VARCHAR(6)", "'\u2007'"), ("STRING", "' \u0085'")),
    ),
    Rule(
        "NULL as a key in ORC",
        "Java writes maps with NULL as a key into ORC (not into parquet), and pyarrow aborts when "
        "it reads one: the Python worker crashes, and the job fails with `SPARK_FAILED`.",
        lambda cell: cell.file_format == "orc" and cell.line == "MAP",
        r"Python worker exited unexpectedly",
        code="SPARK_FAILED",
        values=(({"type": "MAP", "key": "INT", "value": "INT"}, {None: 1}),),
    ),
)
REMARKS = (
    Rule(
        "blanks in ORC",
        "Java removes trailing blanks when it reads ORC. Here, and in the parquet files that "
        "replace ORC files, they stay.",
        lambda cell: cell.file_format == "orc" and cell.line == "CHAR",
    ),
)


def cells() -> Iterator[Cell]:
    """All cells, line by line."""
    for line in KINDS:
        for file_format in FORMATS:
            for role in Role:
                yield Cell(line, role, file_format)


def refusal(cell: Cell) -> Rule | None:
    """The rule that refuses the cell; None: it is supported."""
    return next((rule for rule in REFUSALS if rule.applies(cell)), None)


def supported(role: Role, file_format: str) -> list[Kind]:
    """The types that may have the role in files of the format."""
    return [
        kind
        for line, kinds in KINDS.items()
        if refusal(Cell(line, role, file_format)) is None
        for kind in kinds
    ]


def refused(rule: Rule) -> list[Cell]:
    """The cells that this rule refuses."""
    return [cell for cell in cells() if refusal(cell) is rule]
