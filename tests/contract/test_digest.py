"""The digest tells apart what means something else, and nothing more."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from spark_jobs.contract.guards import MEANT_FOR, Guards, Limit
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import (
    CatalogSpec,
    FileSource,
    JobRequest,
    Origin,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.contract.statements import (
    ColumnSpec,
    CreateTableSpec,
    DeleteAction,
    MergeCase,
    MergeSpec,
    UpdateAllAction,
)
from spark_jobs.errors import RequestError
from tests.contract.strategies import requests

MERGE = MergeSpec(
    source="s",
    on="t.id = s.id",
    cases=(MergeCase("matched", DeleteAction(), "s.gone"), MergeCase("matched", UpdateAllAction())),
    target_alias="t",
    source_alias="s",
)
REQUEST = JobRequest(
    operation_id="op",
    target=TableName("db", "t"),
    catalog=CatalogSpec("paimon", "/w", {"a": "1", "b": "2"}),
    statement=MERGE,
    sources=(FileSource("s", "/data", "parquet"), TableSource("other", TableName("db", "o"))),
)


def test_the_digest_never_changes_between_releases() -> None:
    # A retry may run on a newer release: it must find the commit of the try before.
    assert REQUEST.digest() == "fe30e2de51984fb184b628cb0ef55e7e85eb66e754da7b521f5c93c9b238784c"


GUARDS: dict[str, Any] = {
    **{name: Limit(3) for name in MEANT_FOR if name.endswith(("_rows", "files_rewritten"))},
    **{name: 0.5 for name in MEANT_FOR if name.endswith("_share")},
    "max_bytes_rewritten": 1,
    "expected_partitions": ({"p": "1"},),
    "same_columns": True,
    "audit_table": "db.audit",
    "checks": (RowCheck("c", "SELECT 1 FROM changes WHERE FALSE"),),
}


@pytest.mark.parametrize("name", GUARDS)
def test_no_retry_switches_a_guard_off(name: str) -> None:
    guarded = dataclasses.replace(REQUEST, guards=Guards(**{name: GUARDS[name]}))
    assert guarded.digest() != REQUEST.digest()
    assert guarded.part_digests() != REQUEST.part_digests()


@pytest.mark.parametrize("outside", ["fail", "keep", "quarantine"])
def test_what_becomes_of_late_rows_is_part_of_it(outside: Any) -> None:
    expected = Guards(expected_partitions=({"p": "1"},))
    late = "db.late" if outside == "quarantine" else None
    other = dataclasses.replace(expected, outside_partitions=outside, quarantine_table=late)
    both = [dataclasses.replace(REQUEST, guards=each).digest() for each in (expected, other)]
    assert both[0] != both[1]


def test_the_digest_of_a_file_source_never_changes_either() -> None:
    files = FileSource("f", "/landing/*.csv", "csv", {"header": "true"}, "id BIGINT")
    request = dataclasses.replace(REQUEST, sources=(files, SqlSource("s", "SELECT * FROM f")))
    assert request.digest() == "2a0602d1be6c6088281862cab222b23f926afe0152d2d657ffe9f7afbaffb4d8"


def test_schema_evolution_of_an_insert_is_part_of_its_digest_once_it_is_set() -> None:
    plain = dataclasses.replace(REQUEST, statement=InsertIntoSpec("s"))
    evolving = dataclasses.replace(REQUEST, statement=InsertIntoSpec("s", schema_evolution=True))
    assert plain.digest() == "974bebf3026f5a876bf9db9c19cfcacdfa1262f30723787527bbfd2063193278"
    assert evolving.digest() != plain.digest()


def test_the_format_of_a_new_table_is_part_of_its_digest_once_it_is_set() -> None:
    columns = (ColumnSpec("id", "INT"), ColumnSpec("day", "DATE"))
    spec = CreateTableSpec(columns, ("day",))
    plain = dataclasses.replace(REQUEST, statement=spec, sources=())
    named = dataclasses.replace(plain, statement=dataclasses.replace(spec, format="paimon"))
    assert plain.digest() == "ef82c5d435dba09df919ccdd0f795a1b9e2ef5d2f6998509d1d6e0841aac240c"
    assert named.digest() != plain.digest()


@pytest.mark.parametrize(
    "change",
    [
        {"on_bad_rows": "fail"},
        {"on_bad_rows": "quarantine", "quarantine": "/bad"},
        {"on_bad_rows": "quarantine", "quarantine": "/bad2"},
        {"on_bad_rows": "quarantine", "quarantine": "/bad", "max_bad_rows": 0.5},
        {"on_bad_rows": "quarantine", "quarantine": "/bad", "max_bad_rows": 5.0},
    ],
    ids=str,
)
def test_each_treatment_of_bad_rows_has_a_digest(change: dict[str, Any]) -> None:
    plain = dataclasses.replace(REQUEST, sources=(FileSource("s", "/landing", "csv"),))
    other = dataclasses.replace(REQUEST, sources=(FileSource("s", "/landing", "csv", **change),))
    assert other.digest() != plain.digest()
    assert JobRequest.from_json(other.to_json()).digest() == other.digest()


@given(requests())
def test_every_try_has_the_same_digest(original: JobRequest) -> None:
    again = dataclasses.replace(
        original,
        operation_id="another",
        origin=Origin("dag", "run", "task", 3, 2, 5),
        after_ended_try="skip" if original.after_ended_try == "run" else "run",
    )
    assert again.digest() == original.digest()
    assert JobRequest.from_json(original.to_json()).digest() == original.digest()
    assert re.fullmatch("[0-9a-f]{64}", original.digest())


def test_the_workspace_has_no_meaning() -> None:
    # A retry finds the commit of a try before, wherever that stored its result.
    catalog = dataclasses.replace(REQUEST.catalog, workspace="/scratch")
    assert dataclasses.replace(REQUEST, catalog=catalog).digest() == REQUEST.digest()


def test_limits_have_no_meaning() -> None:
    # They may be raised between two tries.
    options = dataclasses.replace(REQUEST.options, max_new_partitions=5)
    assert dataclasses.replace(REQUEST, options=options).digest() == REQUEST.digest()


def test_the_order_of_options_has_no_meaning() -> None:
    catalog = CatalogSpec("paimon", "/w", {"b": "2", "a": "1"})
    assert dataclasses.replace(REQUEST, catalog=catalog).digest() == REQUEST.digest()


@given(requests())
@settings(max_examples=30)
def test_every_changed_leaf_changes_the_digest(original: JobRequest) -> None:
    tried = 0
    for text in _with_one_change(original):
        try:
            other = JobRequest.from_json(text)
        except RequestError:
            continue
        tried += 1
        assert other != original
        assert other.digest() != original.digest()
    assert tried >= 5


def _with_one_change(original: JobRequest) -> Iterator[str]:
    document = json.loads(original.to_json())
    # Where a job leaves its files bears no meaning; a test of its own says so.
    del document["catalog"]["workspace"]
    for name in ("target", "catalog", "statement", "sources", "options"):
        for changed in _changes(document[name]):
            yield json.dumps({**document, name: changed})


def _changes(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from ({**value, key: changed} for changed in _changes(item))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], c, *value[index + 1 :]] for c in _changes(item))
        if len(value) > 1 and value[0] != value[1]:
            yield [value[1], value[0], *value[2:]]
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1
    elif value is None:
        yield "x"
    else:
        yield {"effective": "strict", "strict": "effective"}.get(value, value + "x")


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(REQUEST, target=TableName("db", "T")),
        dataclasses.replace(REQUEST, catalog=CatalogSpec("paimon", "/w", {"a": "1"})),
        dataclasses.replace(REQUEST, options=JobOptions(session_time_zone="Europe/Berlin")),
        dataclasses.replace(REQUEST, sources=REQUEST.sources[::-1]),
        dataclasses.replace(REQUEST, dry_run=True),
        dataclasses.replace(REQUEST, statement=dataclasses.replace(MERGE, on="s.id = t.id")),
        dataclasses.replace(REQUEST, statement=dataclasses.replace(MERGE, cardinality="strict")),
        dataclasses.replace(REQUEST, statement=dataclasses.replace(MERGE, cases=MERGE.cases[:1])),
    ],
    ids=["target", "catalog", "options", "source order", "dry run", "on", "cardinality", "cases"],
)
def test_another_meaning_has_another_digest(other: JobRequest) -> None:
    assert other.digest() != REQUEST.digest()
