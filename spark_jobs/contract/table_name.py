"""The name of a table, as the catalog knows it, with a branch of it: ``orders$branch_audit``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from spark_jobs.contract.checks import LONGEST_NAME, require
from spark_jobs.contract.sql_text import unquoted
from spark_jobs.errors import ErrorCode, RequestError

_PART = re.compile(r"`(?:[^`]|``)+`|[^.`]+")
_DOTTED = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern})){{1,2}}")
# What stands between the name of a table and that of its branch, and the branch of every table.
BRANCH_MARK: Final = "$branch_"
MAIN_BRANCH: Final = "main"


@dataclass(frozen=True, slots=True)
class TableName:
    """``database.table``, as the catalog knows it.

    ``catalog`` is what the text that names the table calls its catalog, if it does. Who builds a
    request checks it; requests are without it.
    """

    database: str
    table: str
    catalog: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name in ("database", "table"):
            value = getattr(self, name)
            # A name becomes a folder below the warehouse and must not lead out of it. The part from
            # "$" on may name a branch and does not belong to the folder's name.
            safe = (
                bool(value.strip())
                and value.partition("$")[0] not in (".", "..")
                and not re.search(r"[/\\\x00-\x1f\x7f\ud800-\udfff]", value)
                and len(value.encode(errors="replace")) <= LONGEST_NAME
            )
            require(safe, name, f"{value!r} is not a name of a {name}")

    @classmethod
    def parse(cls, text: str) -> TableName:
        """The name in ``database.table`` or ``catalog.database.table``, perhaps in backticks.

        Raises:
            RequestError: REQUEST_INVALID if the text does not have two or three parts.
        """
        if _DOTTED.fullmatch(text.strip()) is None:
            raise RequestError(
                ErrorCode.REQUEST_INVALID, f"{text!r} is not a table name", "Write database.table."
            )
        *catalog, database, table = (unquoted(each).strip() for each in _PART.findall(text))
        return cls(database, table, *catalog)

    @property
    def without_branch(self) -> str:
        """The table's name without a branch."""
        return self.table.partition(BRANCH_MARK)[0]

    @property
    def branch(self) -> str:
        """The branch in ``<table>$branch_<branch>``; ``main`` without one."""
        return self.table.partition(BRANCH_MARK)[2] or MAIN_BRANCH

    def may_be(self, other: TableName) -> bool:
        """Whether both may be the same table, ignoring case; a table is its own branch ``main``."""
        return self.folded == other.folded

    @property
    def folded(self) -> str:
        """The same text for all names that may be the same table."""
        return str(self).lower().removesuffix(f"{BRANCH_MARK}{MAIN_BRANCH}")

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"
