"""SET in a text of several statements: what it means for the statements behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.settings import OverwritePolicy, policy_of, remedy_of
from airflow_provider_merge.sql.text import Span, SqlText
from spark_jobs.contract.inserts import InsertOverwriteSpec, PartitionStatement
from spark_jobs.contract.spark_settings import decides_meaning
from spark_jobs.contract.statements import RowStatement
from spark_jobs.errors import NotSupportedError

_OVERWRITES: Final = "spark.sql.sources.partitionoverwritemode"
_SQL: Final = "spark.sql."
_TIME_ZONE: Final = "spark.sql.session.timezone"
# Settings with the value that statements have anyway.
_AS_IT_IS: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeassignmentpolicy": "ansi",
    "spark.sql.casesensitive": "false",
}


@dataclass(slots=True)
class ScriptSettings:
    """What has been set so far; None: Spark's default, or what the task says.

    ``conf``: settings that change no row, for the whole job.
    """

    overwrites: OverwritePolicy = "static"
    time_zone: str | None = None
    conf: dict[str, str] = field(default_factory=dict)

    def read(self, cursor: Cursor) -> None:
        """Step over what stands behind SET.

        Raises:
            RequestError: SYNTAX_ERROR.
            NotSupportedError: another setting, which the error names, but not its value.
        """
        sql, start = cursor.sql, cursor.sql.tokens[0].start
        if cursor.accept("TIME", "ZONE"):
            self.time_zone = _zone(cursor)
            return
        last = len(sql.tokens) - 1
        rest = Span(cursor.index, last)
        if rest.first == last:
            raise cursor.unexpected("SET key = value")
        key, equals, value = sql.slice(rest).partition("=")
        key, value = (each.strip().strip("'\"`").strip() for each in (key, value))
        # Errors are without what stands behind the key: it may be a secret.
        place = sql.where(start)
        cursor.index = last
        name = key.lower()
        if not equals:
            problem = f"{place}: SET without a value only shows something"
            raise NotSupportedError(problem, "Leave it out.")
        if name == _OVERWRITES:
            self.overwrites = policy_of(sql, start, key, value)
        elif name == _TIME_ZONE:
            self.time_zone = value
        elif key.startswith(_SQL) and not decides_meaning(key):
            if self.conf.setdefault(key, value) != value:
                problem = f"{key} has another value before, and a job has one"
                raise sql.unsupported(start, problem, "Leave one of them out.")
        elif _AS_IT_IS.get(name) != value.lower():
            named = " ".join(key.split()[:1])
            raise NotSupportedError(f"{place}: SET {named} is not read here", remedy_of(named))

    def of_statement(
        self, hint: OverwritePolicy | None, statement: RowStatement | PartitionStatement
    ) -> dict[str, Any]:
        """The parameters of a statement; ``hint``: what its own text says about overwrites."""
        parameters: dict[str, Any] = {}
        if self.time_zone is not None:
            parameters["session_time_zone"] = self.time_zone
        if isinstance(statement, InsertOverwriteSpec):
            is_dynamic = (hint or self.overwrites) == "dynamic" and statement.new_table is None
            # In Spark, no rows replace all rows.
            parameters |= (
                {"mode": "dynamic", "whole_if_unpartitioned": True}
                if is_dynamic
                else {"mode": statement.mode, "allow_empty": statement.mode == "table"}
            )
        return parameters


def _zone(cursor: Cursor) -> str:
    token = cursor.token
    if token.kind != "string":
        raise cursor.sql.unsupported(
            token.start,
            f"SET TIME ZONE {token.text} is not supported",
            "Write the name of a zone in quotes: SET TIME ZONE 'Europe/Berlin'.",
        )
    cursor.index += 1
    return token.text[1:-1]


def same_zone(sql: SqlText, view: str, made_in: str | None, read_in: str | None) -> None:
    """Check that a view is read in the time zone in which it was made, which Spark keeps for it.

    Raises:
        NotSupportedError: it is not.
    """
    if made_in != read_in:
        raise sql.unsupported(
            sql.tokens[0].start,
            f"the view {view} was made before SET TIME ZONE, and keeps its time zone",
            "Set the time zone before the view.",
        )
