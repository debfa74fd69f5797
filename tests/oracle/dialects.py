"""The two engines' spellings."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

from tests.oracle.expressions import Side

HAS_COLLATIONS: Final = int(version("pyspark").split(".")[0]) >= 4


@dataclass(frozen=True)
class Spark:
    """Spark SQL with given aliases; ``shout`` spells columns in capitals, which means the same."""

    target_alias: str = "t"
    source_alias: str = "s"
    shout: bool = False
    source_name: str = "changes"

    def correlated(self, condition: str) -> str:
        return condition

    def source(self) -> str:
        return f"{self.source_name} AS {self.source_alias}"

    def column(self, side: Side, name: str, *, bare: bool) -> str:
        alias = self.target_alias if side == "t" else self.source_alias
        return self.name(name) if bare else f"{alias}.{self.name(name)}"

    def name(self, name: str) -> str:
        """A column of the target, where it is assigned or listed."""
        return name.upper() if self.shout else name

    def string(self, value: str) -> str:
        # Two adjacent literals are one in Spark: a doubled quote would vanish.
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"

    def null_safe_equal(self, left: str, right: str) -> str:
        return f"({left} <=> {right})"

    def moment(self, value: dt.datetime) -> str:
        return f"TIMESTAMP_NTZ '{value.isoformat(' ')}'"

    def ignoring_case(self, left: str, operator: str, right: str) -> str:
        if not HAS_COLLATIONS:
            return f"(lower({left}) {operator} lower({right}))"
        return f"({left} {operator} {right} COLLATE UTF8_LCASE)"


@dataclass(frozen=True)
class DuckDb:
    """DuckDB with the aliases t and s."""

    def correlated(self, condition: str) -> str:
        # As a join of two conditions, one of them NULL, DuckDB 1.5 takes the row for found.
        return f"({condition} IS TRUE)"

    def source(self) -> str:
        return "source AS s"

    def column(self, side: Side, name: str, *, bare: bool) -> str:
        del bare  # DuckDB calls a bare name ambiguous even where only one side is seen
        return f'{side}."{name}"'

    def string(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    def null_safe_equal(self, left: str, right: str) -> str:
        return f"({left} IS NOT DISTINCT FROM {right})"

    def moment(self, value: dt.datetime) -> str:
        return f"TIMESTAMP '{value.isoformat(' ')}'"

    def ignoring_case(self, left: str, operator: str, right: str) -> str:
        return f"(lower({left}) {operator} lower({right}))"
