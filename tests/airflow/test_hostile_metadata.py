"""Damaged and hostile files that the Airflow side reads itself: typed errors, nothing else."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from airflow_provider_merge.metadata.operations import read_result
from airflow_provider_merge.metadata.paimon.snapshots import PaimonSnapshots
from spark_jobs.contract.properties import (
    BASE_SNAPSHOT_ID,
    METRICS,
    OPERATION_ID,
    TRY_NUMBER,
    result_of_snapshot,
)
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.errors import ErrorCode, JobError
from tests.fuzz.mutations import damaged_bytes, hostile_json

NAME = TableName("shop", "orders")
SEEDS = 1500
EXPECTED = (ErrorCode.METADATA_UNREADABLE, ErrorCode.REQUEST_INVALID)
VERSION_TOO = (*EXPECTED, ErrorCode.REQUEST_VERSION_UNKNOWN)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """Every file that is read, by its path below the warehouse."""
    snapshot = {
        "version": 3,
        "id": 7,
        "schemaId": 0,
        "baseManifestList": "manifest-list-a",
        "deltaManifestList": "manifest-list-b",
        "commitUser": "mine",
        "commitIdentifier": 1,
        "commitKind": "APPEND",
        "timeMillis": 1_700_000_000_000,
        "totalRecordCount": 3,
        "properties": {
            OPERATION_ID: "mine",
            METRICS: json.dumps({"inserted": 3}),
            BASE_SNAPSHOT_ID: "6",
            TRY_NUMBER: "1",
        },
    }
    result = JobResult("mine", "committed", str(NAME), "digest", new_snapshot_id=7)
    texts = {
        "shop.db/orders/snapshot/snapshot-7": json.dumps(snapshot),
        "shop.db/orders/snapshot/LATEST": "7",
        "shop.db/orders/consumer/consumer-merge-mine": json.dumps({"nextSnapshot": 6}),
        "_operations/mine.json": result.to_json(),
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {name: text.encode() for name, text in texts.items()}


def everything(warehouse: Path) -> None:
    """What a task reads to learn what became of its operation."""
    request = JobRequest("mine", NAME, CatalogSpec("paimon", str(warehouse)), DeleteSpec("t"))
    read_result(request, {})
    snapshots = PaimonSnapshots.find(str(warehouse), NAME, {})
    snapshots.latest()
    list(snapshots.newest_first())
    found = snapshots.made_by("mine")
    if found is not None:
        result_of_snapshot(str(NAME), found.snapshot_id, found.properties)


def error_of(warehouse: Path) -> JobError | None:
    """The error with which reading everything ends; None: all is well."""
    try:
        everything(warehouse)
    except JobError as error:
        return error
    return None


@pytest.mark.slow
def test_every_file_may_be_damaged(files: dict[str, Any], tmp_path: Path) -> None:
    everything(tmp_path)
    outcomes: Counter[str] = Counter()
    for seed in range(SEEDS):
        random = Random(seed)
        name = random.choice(sorted(files))
        mutate = random.choice((damaged_bytes, hostile_json, hostile_json))
        (tmp_path / name).write_bytes(mutate(files[name], random))
        started = time.process_time()
        try:
            error = error_of(tmp_path)
        except Exception as other:
            raise AssertionError(f"seed {seed}, {name}") from other
        outcomes["read" if error is None else "refused"] += 1
        assert error is None or error.code in VERSION_TOO, f"seed {seed}: {error}"
        assert len(str(error)) < 20_000, f"seed {seed}"
        assert time.process_time() - started < 5, f"seed {seed}"
        (tmp_path / name).write_bytes(files[name])

    assert min(outcomes["read"], outcomes["refused"]) > SEEDS // 10


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("shop.db/orders/snapshot/LATEST", "9" * 5000),
        ("shop.db/orders/snapshot/snapshot-7", '{"id": 1e999}'),
        ("shop.db/orders/snapshot/snapshot-7", "[" * 100_000),
        ("shop.db/orders/consumer/consumer-merge-mine", '{"nextSnapshot": 1e999}'),
        ("_operations/mine.json", "x" * (5 * 1024 * 1024)),
    ],
)
def test_numbers_and_texts_that_are_too_large(
    files: dict[str, Any], tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)

    error = error_of(tmp_path)

    if name.endswith("LATEST"):
        assert error is None  # only a hint
    else:
        assert error.code in EXPECTED


@pytest.mark.parametrize("warehouse", ["{}", "file://{}"])
@pytest.mark.parametrize("table", ["a%2F..%2F..%2Fsecret", "..%2f", "%2e%2e", "a?b", "a#b"])
def test_a_table_name_is_one_folder(tmp_path: Path, warehouse: str, table: str) -> None:
    """In a URI a percent sign means something, in a name it does not."""
    folder = tmp_path / "shop.db" / table / "snapshot"
    folder.mkdir(parents=True)
    (folder / "snapshot-1").write_text(
        json.dumps(
            {"id": 1, "schemaId": 0, "commitUser": "u", "commitKind": "APPEND", "timeMillis": 1}
        )
    )

    found = PaimonSnapshots.find(warehouse.format(tmp_path), TableName("shop", table), {})

    assert found.ids() == [1]
    assert found.latest().commit_user == "u"
