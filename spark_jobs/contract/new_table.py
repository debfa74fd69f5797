"""The table that a statement creates for the rows of its query: CREATE TABLE ... AS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from spark_jobs.contract.checks import require, require_among
from spark_jobs.contract.partition_keys import parsed_key

# The property of a table that tells which operation created it, to insert rows there.
CREATED_BY: Final = "merge.created-by"

WhenExists = Literal["fail", "keep", "replace"]


@dataclass(frozen=True, slots=True)
class NewTable:
    """The target of INSERT, which has the columns of its source, all of which may be NULL.

    ``partition_keys``, ``table_options``, ``comment`` and ``format`` are as in ``CreateTableSpec``.
    ``when_exists``: what to do if there is a table that this operation has not created: ``fail``;
    ``keep`` it, and insert nothing; ``replace`` its rows, if all else of it is as asked for.
    """

    partition_keys: tuple[str, ...] = ()
    table_options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    format: str | None = None
    when_exists: WhenExists = "fail"

    def __post_init__(self) -> None:
        choices = get_args(WhenExists)
        require_among(self.when_exists, choices, "when_exists")
        for index, key in enumerate(self.partition_keys):
            parsed_key(key, f"partition_keys[{index}]")
        require(
            CREATED_BY not in self.table_options,
            "table_options",
            f"{CREATED_BY} tells which operation created the table",
            "Leave it out.",
        )
