"""The MERGE that stores the versions of a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.checks import require
from spark_jobs.contract.identifiers import quote
from spark_jobs.contract.scd2 import ACTION, CLOSED, CORRECTED, INSERTED, REMOVED, Scd2Source
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
        for each in sources:
            if each.kind == "cdc":
                raise NotSupportedError(
                    "source: change events (cdc_source) are not turned into versions: their "
                    "deletes and moved keys would need times of their own.",
                    "Give the rows of the events by a query (sql_source) with a column for the "
                    "time (effective) and a BOOLEAN one for deletes (delete_marker).",
                )
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


def _identity(source: Scd2Source) -> tuple[str, ...]:
    return (*source.keys, source.valid_from)


def _is(action: str) -> str:
    return f"{_SOURCE}.{ACTION} = '{action}'"
