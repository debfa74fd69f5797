"""Every parameter, given in every way and place: it arrives as given, or an error names it."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_merge.parameters import ParameterOperator
from spark_jobs.errors import JobError
from tests.airflow.contexts import Server
from tests.airflow.given_parameters import WAYS, Case, cases, played, signature_names, value
from tests.airflow.parameter_values import classes
from tests.support.turns import has_turn

# Of these an empty dict or list means just that.
MAY_BE_EMPTY = {"conf", "partition_keys", "primary_key", "sources", "table_options"}
_ALL = list(enumerate(cases()))
_PARTS = 120


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def test_every_parameter_is_tried() -> None:
    for kind in classes():
        assert kind.parameter_names == signature_names(kind)
        missing = [name for name in kind.parameter_names if value(Case(kind, name, "", "")) is None]
        place = "_VALUES of tests/airflow/parameter_values.py"
        assert not missing, f"{kind.__name__}: add a value for {missing} to {place}"


@pytest.mark.parametrize("kind", classes(), ids=lambda each: each.__name__)
def test_a_parameter_arrives_or_is_named(
    kind: type[ParameterOperator], server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    wrong: list[str] = []
    counts: Counter[str] = Counter()
    for number, case in _ALL:
        if case.kind is kind and has_turn(number, _PARTS):
            problem = _problem(case, server)
            counts[case.place] += 1
            if problem:
                wrong.append(f"{case}: {problem}")
    print(f"{kind.__name__}: {sum(counts.values())} cases")  # noqa: T201 - the count is a result
    assert not wrong, f"{len(wrong)} of {sum(counts.values())}:\n" + "\n".join(wrong[:40])


def _problem(case: Case, server: Server) -> str | None:
    way, given = WAYS[case.way], value(case)
    try:
        arrived, asked = played(case, server)
    except (JobError, AirflowFailException) as error:
        return _unnamed(case, str(error), server)
    except TypeError as error:
        # Airflow's own, of a parameter that it requires.
        text = str(error)
        return None if text == f"missing keyword argument {case.name!r}" else f"TypeError: {text}"
    if case.place == "missing item":
        return "taken for left out"
    means_none = case.name in MAY_BE_EMPTY and arrived in ({}, [])
    if case.place == "default_args" and not means_none and _is_refused(case, server):
        return None if arrived is None else "a default of no use is not ignored"
    is_document = way.expected is str and case.name in case.kind.document_parameters
    expected = json.dumps(given) if is_document else way.expected(given)
    if arrived != expected:
        return f"{arrived!r} arrived for {expected!r}"
    if way.is_nothing and case.name not in MAY_BE_EMPTY:
        return "nothing was taken for something"
    if way.same_request and case.way != "plain":
        _, reference = played(_plain(case), server)
        if asked != reference:
            return f"asks for {asked}, not {reference}"
    return None


def _plain(case: Case) -> Case:
    return Case(case.kind, case.name, "plain", "task")


def _is_refused(case: Case, server: Server) -> bool:
    """Whether the parameter is of no use beside the others, whatever its value."""
    try:
        played(_plain(case), server)
    except JobError:
        return True
    return False


def _unnamed(case: Case, text: str, server: Server) -> str | None:
    is_value = WAYS[case.way].same_request and case.place != "missing item"
    if is_value and not _cannot_be_later(case, text) and not _is_refused(case, server):
        return f"refused: {text}"
    if not re.search(rf"\b{re.escape(case.name)}\b", text):
        return f"not named: {text}"
    return None if "Remedy:" in text else f"no remedy: {text}"


def _cannot_be_later(case: Case, text: str) -> bool:
    """A parameter that decides what the task is for Airflow."""
    is_later = case.way != "plain" or case.place == "mapped group"
    return is_later and "cannot be a template or the result of a task" in text
