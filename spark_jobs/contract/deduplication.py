"""A source with one row for each key: of several rows, the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, get_args

from spark_jobs.contract.checks import require, require_among, require_identifier

Tie = Literal["fail", "any"]
# Behind the name of such a source: the name of the source that it reads.
ALL_ROWS: Final = "_before_deduplication"


def without_deduplication(name: str) -> str:
    """The name that somebody gave to a source, which may be deduplicated."""
    while name.endswith(ALL_ROWS):
        name = name.removesuffix(ALL_ROWS)
    return name


@dataclass(frozen=True, slots=True)
class DeduplicatedSource:
    """One row for each key of a source that stands before it in the request.

    ``by`` are the columns of the key. Of several rows with a key, the one with the greatest values
    in ``order_by`` is kept, the first column first; NULL in any of these columns is an error.
    ``tie``: what becomes of different rows with equal values there: ``fail``, or ``any`` of them is
    kept, the same whenever the rows are the same. Rows that are equal in all columns are one row.
    """

    name: str
    source: str
    by: tuple[str, ...]
    order_by: tuple[str, ...] = ()
    tie: Tie = "fail"
    kind: ClassVar[str] = "deduplicated"
    is_incremental: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require(bool(self.by), "by", "is empty", "Name the columns of the key.")
        for place in ("by", "order_by"):
            for index, column in enumerate(getattr(self, place)):
                require_identifier(f"{place}[{index}]", column)
                require(
                    not column.upper().endswith((" ASC", " DESC")),
                    f"{place}[{index}]",
                    f"{column!r} has a direction",
                    "The row with the greatest values is kept; for the smallest ones, order by "
                    "an expression of a query (sql_source).",
                )
        named = [each.lower() for each in (*self.by, *self.order_by)]
        for name in named:
            require(named.count(name) == 1, "order_by", f"{name} occurs more than once")
        choices = get_args(Tie)
        require_among(self.tie, choices, "tie")
