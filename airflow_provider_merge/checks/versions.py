"""Checks the columns of a source of versions (SCD2) against its target and its rows."""

from __future__ import annotations

from airflow_provider_merge.checks.relations import Relation
from spark_jobs.contract.scd2 import Scd2Source

_OF_TARGET = ("valid_from", "valid_to", "current", "deleted")
_OF_SOURCE = ("effective", "delete_marker")


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
