"""The MERGE that stores the versions of a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.checks import require
from spark_jobs.contract.event_documents import ticks, times_of
from spark_jobs.contract.scd2 import ACTION, CLOSED, CORRECTED, INSERTED, REMOVED, Scd2Source
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    Statement,
    UpdateAction,
    UpdateAllAction,
)
from spark_jobs.errors import NotSupportedError

if TYPE_CHECKING:
    from spark_jobs.contract.guards import Guards
    from spark_jobs.contract.options import JobOptions
    from spark_jobs.contract.sources import Source

_TARGET: Final = "t"
_SOURCE: Final = "s"


def scd2_merge(source: Scd2Source) -> MergeSpec:
    """The statement whose source is ``source``: the only one that may read it."""
    pairs = [f"{_TARGET}.{quote(each)} = {_SOURCE}.{quote(each)}" for each in _identity(source)]
    ends = [each for each in (source.valid_to, source.current) if each is not None]
    close = UpdateAction(
        tuple(Assignment(quote(each), f"{_SOURCE}.{quote(each)}") for each in ends)
    )
    cases = [MergeCase("matched", close, _is(CLOSED))]
    if source.corrections == "overwrite":
        cases.append(MergeCase("matched", UpdateAllAction(), _is(CORRECTED)))
    if source.corrections == "overwrite" or source.late != "fail":
        cases.append(MergeCase("matched", DeleteAction(), _is(REMOVED)))
    cases.append(MergeCase("not_matched", InsertAllAction(), _is(INSERTED)))
    return MergeSpec(
        source=source.name,
        on=" AND ".join(pairs),
        cases=tuple(cases),
        target_alias=_TARGET,
        source_alias=_SOURCE,
        clauses_of="versions",
    )


def require_scd2(
    statement: Statement, sources: Sequence[Source], options: JobOptions, guards: Guards | None
) -> None:
    """Refuse versions as the source of another statement, or with options that they have not.

    Raises:
        RequestError: REQUEST_INVALID.
        NotSupportedError: names the option or the source.
    """
    for source in sources:
        if not isinstance(source, Scd2Source):
            continue
        is_own = source is sources[-1] and statement == scd2_merge(source)
        require(is_own, f"sources.{source.name}", "versions are for the MERGE of their own", "")
        require_events(source, sources)
        _require_same_keys(source, sources)
        if options.isolation == "snapshot":
            raise NotSupportedError(
                "isolation: with 'snapshot', two runs could each add a current version of a key.",
                "Leave it out.",
            )
        if guards is not None and guards.quarantine_table is not None:
            raise NotSupportedError(
                "quarantine_table: a version that is set aside would leave a gap before the next.",
                "Filter the source, or take outside_partitions='fail'.",
            )
        if source.finds_absent and any(each.is_incremental for each in sources):
            raise NotSupportedError(
                f"hard_deletes: {source.hard_deletes!r} takes keys that the source lacks for "
                "deleted, but this source reads only what is new.",
                "Name a delete_marker, set hard_deletes='ignore', or read all of the source.",
            )


def require_events(versions: Scd2Source, sources: Sequence[Source]) -> None:
    """Refuse change events from which versions do not follow.

    Raises:
        RequestError: REQUEST_INVALID.
        NotSupportedError: names the parameter.
    """
    for source in sources:
        if not isinstance(source, CdcSource):
            require(
                not versions.of_events or source.name != versions.source,
                f"sources.{versions.name}.of_events",
                "is for change events (cdc_source)",
            )
            continue
        if source.name != versions.source or source.net or not versions.of_events:
            raise NotSupportedError(
                "source: change events (cdc_source) below another source are not turned into "
                "versions: only the last event of each key is left of them.",
                "Let cdc_source be the source itself, around the query.",
            )
        _require_times_of_events(versions, source)


def _require_times_of_events(versions: Scd2Source, events: CdcSource) -> None:
    effective = (versions.effective or "").lower()
    if not events.sequence:
        raise NotSupportedError(
            "source: net changes have neither an order nor times as change events have them.",
            "Let changes_source itself be the source, without cdc_source around it.",
        )
    require(
        events.deleted is None,
        "source.deleted",
        "is for rows of which there is one for each key",
        "Leave it out: hard_deletes and deleted of the operator say what becomes of versions.",
    )
    is_told = effective not in map(str.lower, events.unchanged)
    require(is_told, "effective", f"{versions.effective} is told by few events (unchanged)")
    place = {e.column.lower(): e.path for e in events.sequence}.get(effective)
    is_document = events.format != "columns"
    known = f"Name in sequence one of: {', '.join(times_of(events.format))}"
    require(
        not is_document or place is None or ticks(events.format, place) is not None,
        "effective",
        f"{versions.effective} is {place} of {events.format} documents, which is no time",
        f"{known}; and its column in effective.",
    )
    if is_document and place is None and versions.hard_deletes != "ignore":
        raise NotSupportedError(
            f"effective: {versions.effective} is a column of the row, and a delete tells the row "
            "as it was before: it would say when the last version began.",
            f"{known}; and its column in effective. Or set hard_deletes='ignore'.",
        )
    if versions.corrections == "ignore":
        raise NotSupportedError(
            "corrections: 'ignore' would leave out the later one of two events of one time, if it "
            "comes in a later run.",
            "Leave it out, or set corrections='overwrite'.",
        )
    if events.unchanged and versions.late != "fail":
        raise NotSupportedError(
            "late: with 'insert_between', a late event could change the value that later versions "
            f"took over as unchanged ({', '.join(events.unchanged)}).",
            "Set late='fail', or let PostgreSQL tell whole rows (REPLICA IDENTITY FULL).",
        )


def _require_same_keys(versions: Scd2Source, sources: Sequence[Source]) -> None:
    """Check that versions and their events tell things apart by the same columns."""
    own = {each.lower() for each in versions.keys}
    for source in sources:
        if isinstance(source, CdcSource) and source.name == versions.source:
            require(
                own == {key.lower() for key in source.keys},
                "keys",
                f"{', '.join(versions.keys)} are not the keys of the change events: "
                f"{', '.join(source.keys)}",
                "Name the same columns in keys of the operator and of cdc_source.",
            )


def _identity(source: Scd2Source) -> tuple[str, ...]:
    return (*source.keys, source.valid_from)


def _is(action: str) -> str:
    return f"{_SOURCE}.{ACTION} = '{action}'"
