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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow.sdk.definitions._internal.types import NOTSET, ArgNotSet

from airflow_provider_merge.exceptions import invalid, no_text
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


# How each function above goes on.
_ACTIONS: Final = {
    when_matched: ".update_all(), .update({...}) or .delete()",
    when_not_matched: ".insert_all() or .insert({...})",
    when_not_matched_by_source: ".update({...}) or .delete()",
}
EXAMPLE: Final = "[when_matched().update_all(), when_not_matched().insert_all()]"


def clauses(when: Any) -> Any:
    """``when`` with each clause in the form of the contract; what is no list is left as it is.

    Raises:
        RequestError: REQUEST_INVALID: a function of this module is not called.
    """
    if not isinstance(when, list | tuple):
        _require_called(when, "when")
        return when
    for number, each in enumerate(when):
        _require_called(each, f"when[{number}]")
    return [clause(each) for each in when]


def _require_called(value: Any, place: str) -> None:
    """Refuse a function, which Airflow would take for a template and call."""
    if isinstance(getattr(value, "__self__", None), _When):
        raise invalid(place, f"the function {value.__name__} is not called", "Put () behind it.")
    for function, actions in _ACTIONS.items():
        if value is function:
            name = function.__name__
            raise invalid(place, f"{name} is not called", f"Write {name}(){actions}.")


def require_action(document: Any, place: str) -> None:
    """Check that a clause says what it does, and that the values in it are texts.

    Raises:
        RequestError: REQUEST_INVALID, naming the column.
    """
    if not isinstance(document, dict):
        return
    function = next((f for f in _ACTIONS if f().when == document.get("when")), None)
    if function is not None and "action" not in document:
        remedy = f"Say what the clause does: {function.__name__}(){_ACTIONS[function]}."
        raise invalid(f"{place}.action", "missing", remedy)
    action = document.get("action")
    for kind, column, value in _values(action) if isinstance(action, dict) else ():
        if not isinstance(value, str):
            remedy = "Write 'NULL', which is SQL's." if value is None else ""
            raise no_text(f"{place}.{kind}.{column}", value, remedy)


def _values(action: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The kind of an action, each column of it and its value, where they are written so."""
    if isinstance(action.get("assignments"), list):
        for each in action["assignments"]:
            if isinstance(each, dict) and each.keys() == {"column", "value"}:
                yield "update", each["column"], each["value"]
    columns, values = action.get("columns"), action.get("values")
    if isinstance(columns, list) and isinstance(values, list):
        yield from (("insert", *pair) for pair in zip(columns, values, strict=False))


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
