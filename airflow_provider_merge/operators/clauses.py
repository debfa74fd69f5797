"""WHEN clauses, built as in PySpark's ``DataFrame.mergeInto``.

::

    when=[
        when_matched("s.cancelled").delete(),
        when_matched().update({"delay": "s.delay"}),
        when_not_matched().insert_all(),
    ]

Each chain ends in a plain dict, the JSON form of ``MergeCase``: Airflow renders and serialises
only plain values. You can also write the dicts yourself; see ``clause``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow.sdk.definitions._internal.types import NOTSET, ArgNotSet

from spark_jobs.contract.statements import When

Clause = dict[str, Any]
# ``where`` of a DELETE or UPDATE that changes every row; no condition reads like this.
ALL_ROWS: Final = "ALL ROWS"


@dataclass(frozen=True, slots=True)
class _When:
    when: When
    condition: str | ArgNotSet

    @property
    def document(self) -> Clause:
        """The clause without its action."""
        document: Clause = {"when": self.when}
        if not isinstance(self.condition, ArgNotSet):
            document["condition"] = self.condition
        return document

    def _then(self, **action: Any) -> Clause:
        return {**self.document, "action": action}


class WhenMatched(_When):
    """WHEN MATCHED [AND condition] THEN …"""

    def update(self, assignments: Mapping[str, str]) -> Clause:
        """UPDATE SET: column → Spark SQL expression; a column may be nested (``address.city``)."""
        return self._then(kind="update", assignments=_assignments(assignments))

    def update_all(self) -> Clause:
        """UPDATE SET *"""
        return self._then(kind="update_all")

    def delete(self) -> Clause:
        """DELETE"""
        return self._then(kind="delete")


class WhenNotMatched(_When):
    """WHEN NOT MATCHED [AND condition] THEN …"""

    def insert(self, values: Mapping[str, str]) -> Clause:
        """INSERT: column → Spark SQL expression over the source."""
        return self._then(kind="insert", columns=list(values), values=list(values.values()))

    def insert_all(self) -> Clause:
        """INSERT *"""
        return self._then(kind="insert_all")


class WhenNotMatchedBySource(_When):
    """WHEN NOT MATCHED BY SOURCE [AND condition] THEN …"""

    def update(self, assignments: Mapping[str, str]) -> Clause:
        """UPDATE SET: column → Spark SQL expression over the target."""
        return self._then(kind="update", assignments=_assignments(assignments))

    def delete(self) -> Clause:
        """DELETE"""
        return self._then(kind="delete")


def when_matched(condition: str | ArgNotSet = NOTSET) -> WhenMatched:
    """For target rows that ON joins with a source row."""
    return WhenMatched("matched", condition)


def when_not_matched(condition: str | ArgNotSet = NOTSET) -> WhenNotMatched:
    """For source rows that ON joins with no target row; ``condition`` sees only the source."""
    return WhenNotMatched("not_matched", condition)


def when_not_matched_by_source(condition: str | ArgNotSet = NOTSET) -> WhenNotMatchedBySource:
    """For target rows that ON joins with no source row; ``condition`` sees only the target."""
    return WhenNotMatchedBySource("not_matched_by_source", condition)


def clause(value: Any) -> Any:
    """A clause in the form of the contract, from a dict that a user wrote.

    ``{"when": "matched", "condition": "s.cancelled", "action": "delete"}`` is short for an action
    without fields; ``assignments`` and ``values`` may be a dict column → expression. Anything else
    is returned unchanged: decoding reports where it is invalid.
    """
    if isinstance(value, _When):
        return value.document
    if not isinstance(value, dict):
        return value
    action = value.get("action")
    if isinstance(action, str):
        action = {"kind": action}
    if isinstance(action, dict) and isinstance(action.get("assignments"), Mapping):
        action = {**action, "assignments": _assignments(action["assignments"])}
    if isinstance(action, dict) and isinstance(action.get("values"), Mapping):
        values = action["values"]
        action = {**action, "columns": list(values), "values": list(values.values())}
    return {**value, "action": action} if "action" in value else value


def _assignments(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"column": column, "value": value} for column, value in values.items()]
