"""Which events of a source change no row of the target's, whatever they say: counted, and told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.events.documents import Places
from spark_jobs.engine.runtime.sql_text import named, text_literal
from spark_jobs.errors import DataError, ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OTHERS: Final = "of other tables"
_TOMBSTONES: Final = "tombstones"
_IGNORED: Final = "ignored operations"
_MOST_NAMES: Final = 5


@dataclass(frozen=True, slots=True)
class SkippedEvents:
    """Of ``events``, how many were skipped for which reason.

    ``tables``: where all that say a table are of other ones, the names of these, the first few.
    """

    events: int
    by_reason: Mapping[str, int]
    tables: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """All that were skipped."""
        return sum(self.by_reason.values())

    def told(self, source: CdcSource) -> str:
        """A line for people."""
        parts = [f"{reason} {number:,}" for reason, number in self.by_reason.items() if number]
        line = f"{source_text(source)}: of {self.events:,} events, skipped: {', '.join(parts)}"
        if self.tables:
            return f"{line}; none is of {source.table}. Their tables: {', '.join(self.tables)}"
        return line


def skipped_events(spark: SparkSession, source: CdcSource) -> SkippedEvents:
    """Count the events that are skipped of ``source``, whose own source has a view of its rows.

    Raises:
        DataError: CHANGE_EVENT_INVALID: all are of tables but for upper and lower case the asked.
    """
    rows = spark.sql(f"SELECT * FROM {quote(source.source)}")
    reasons = _reasons(source, rows)
    counts = [named(f"count_if({test})", f"r{i}") for i, (_, test) in enumerate(reasons)]
    totals = rows.selectExpr(named("count(*)", "events"), *counts).first()
    assert totals is not None  # noqa: S101 - an aggregation without groups has a row
    by_reason = {name: int(totals[f"r{i}"]) for i, (name, _) in enumerate(reasons)}
    tables: tuple[str, ...] = ()
    others = by_reason.get(_OTHERS, 0)
    if others and sum(by_reason.values()) == totals["events"]:
        tables = _tables(source, rows)
    return SkippedEvents(int(totals["events"]), by_reason, tables)


def _reasons(source: CdcSource, rows: DataFrame) -> list[tuple[str, str]]:
    """Why events are skipped, with the condition of each; of an event, the first counts."""
    operation, reasons = f"CAST({quote(source.operation)} AS STRING)", []
    if source.format != "columns":
        places = Places.of(source, rows)
        operation = places.operation
        reasons.append((_TOMBSTONES, places.is_tombstone))
        reasons.append((_OTHERS, f"NOT coalesce({places.is_of_table}, FALSE)"))
    if source.values.ignore:
        names = ", ".join(map(text_literal, source.values.ignore))
        reasons.append((_IGNORED, f"{operation} IN ({names})"))
    made: list[tuple[str, str]] = []
    before: list[str] = []
    for reason, test in reasons:
        is_so = f"coalesce({test}, FALSE)"
        made.append((reason, " AND ".join([*before, is_so])))
        before.append(f"NOT {is_so}")
    return made


def _tables(source: CdcSource, rows: DataFrame) -> tuple[str, ...]:
    """The tables of the events, those with most events first.

    Raises:
        DataError: CHANGE_EVENT_INVALID: one of them is spelt otherwise.
    """
    name = named(f"coalesce({Places.of(source, rows).table}, 'none')", "name")
    groups = rows.selectExpr(name).groupBy("name").count()
    found = groups.orderBy("count", ascending=False).limit(_MOST_NAMES).collect()
    names = tuple(str(each[0]) for each in found)
    asked = source.table or ""
    for table_name in names:
        if table_name.lower() == asked.lower():
            raise DataError(
                ErrorCode.CHANGE_EVENT_INVALID,
                f"{source_text(source)}: table: none of its events is of {asked}, but some are of "
                f"{table_name}",
                f"Write table={table_name!r}.",
            )
    return names
