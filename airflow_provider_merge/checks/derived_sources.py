"""Checks sources that are made of others against the columns that metadata tells.

The columns of a source of versions (SCD2) are checked against its target, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_merge.checks.relations import Relation
from spark_jobs.contract.cdc import CdcSource, last_of
from spark_jobs.contract.request import Source
from spark_jobs.contract.scd2 import Scd2Source
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.sources import DerivedSource
from spark_jobs.contract.statements import MergeSpec
from spark_jobs.contract.table_versions import CHANGE_TYPE
from spark_jobs.errors import AnalysisError, ErrorCode

_OF_TARGET = ("valid_from", "valid_to", "current", "deleted")
_OF_SOURCE = ("effective", "delete_marker")


def derived_relation(source: DerivedSource, label: str, rows: Relation) -> Relation:
    """The columns of a source made of ``rows``, if these are known.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, naming the parameter.
    """
    if isinstance(source, Scd2Source):
        return Relation(source.name, label, None)
    if isinstance(source, CdcSource):
        return _event_relation(source, label, rows)
    relation = Relation(source.name, label, rows.columns)
    for part in ("by", "order_by"):
        for name in getattr(source, part):
            if rows.columns is not None and not relation.find(name):
                raise relation.not_found(name, f"deduplicate: {part}")
    return relation


def _event_relation(source: CdcSource, label: str, events: Relation) -> Relation:
    added = {CHANGE_TYPE: "STRING", **{last_of(each): "" for each in source.unchanged}}
    if source.deleted is not None:
        added[source.deleted] = "BOOLEAN"
    if source.format != "columns":
        order = {each.column: "" for each in source.sequence}
        return Relation(
            source.name, label, {**{e.name: e.type for e in source.columns}, **order, **added}
        )
    if events.columns is None:
        return Relation(source.name, label, None)
    named = Relation(source.name, label, events.columns)
    asked = [("operation", source.operation), *(("without", each) for each in source.without)]
    asked += [("sequence", each.path) for each in source.sequence]
    for place, name in (*asked, *(("keys", e) for e in source.keys)):
        if not named.find(name):
            raise named.not_found(name, place)
    left_out = {name.lower() for _, name in asked}
    kept = {name: kind for name, kind in events.columns.items() if name.lower() not in left_out}
    order = {e.column: events.columns[named.find(e.path)[0]] for e in source.sequence}
    return Relation(source.name, label, {**kept, **order, **added})


def require_kept(spec: object, sources: Sequence[Source], target: Relation) -> None:
    """Check that the target keeps the sequence of events that are compared with its rows.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, naming the column.
    """
    if not isinstance(spec, MergeSpec) or target.columns is None:
        return
    for source in sources:
        if source.name != spec.source or not isinstance(source, CdcSource):
            continue
        kept_columns = [each.column for each in source.sequence] if source.late == "ignore" else []
        kept_columns += [] if source.deleted is None else [source.deleted]
        for name in kept_columns:
            if not target.find(name):
                place = "deleted" if name == source.deleted else "sequence"
                raise AnalysisError(
                    ErrorCode.COLUMN_NOT_FOUND,
                    f"{source_text(source)}: {place}: {target.label} has no column {name}",
                    "Add the column to the target, which keeps it for each row"
                    + ("." if place == "deleted" else ", or say late='apply'."),
                    name=name,
                )


def check_versions(source: Scd2Source, target: Relation, rows: Relation) -> None:
    """Check names, as far as columns are known; ``rows``: what the source is made of.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, naming the parameter.
    """
    own = [getattr(source, place) for place in _OF_TARGET]
    if target.columns is not None:
        named = {place: [getattr(source, place)] for place in _OF_TARGET}
        named |= {"keys": list(source.keys), "tracked": list(source.tracked or ())}
        for place, names in named.items():
            for name in names:
                if name is not None and not target.find(name):
                    raise target.not_found(name, place)
    if rows.columns is None:
        return
    for place in _OF_SOURCE:
        name = getattr(source, place)
        if name is not None and not rows.find(name):
            raise rows.not_found(name, place)
    lowered = {each.lower() for each in own if each is not None}
    for name in target.columns or ():
        if name.lower() not in lowered and not rows.find(name):
            raise rows.not_found(name, "source")
