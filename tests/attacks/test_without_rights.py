"""Folders that the job's user may not write: errors name path, user and remedy, and are final."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support.namespaces import python, run_as

_NOBODY = 65534


@pytest.fixture(scope="module")
def told() -> Iterator[Any]:
    """What a user other than root was told: rights do not bind root."""
    user = _NOBODY if os.geteuid() == 0 else os.geteuid()
    if user == _NOBODY and shutil.which("setpriv") is None:
        pytest.skip("runs as root, whom rights do not bind, and has no setpriv of util-linux")
    # pytest's own folders are closed to others.
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        done = run_as(user, python("-m", "tests.attacks.without_rights", name), folder)
        assert done.returncode == 0, done.stderr[-4000:]
        found = json.loads(done.stdout.splitlines()[-1])
        assert found["user"] == user
        yield found


@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
@pytest.mark.parametrize(
    ("number", "code", "folder"),
    [
        (1, "WORKSPACE_ACCESS_DENIED", "/_operations/"),
        (2, "WAREHOUSE_ACCESS_DENIED", {"paimon": "/snapshot/", "iceberg": "/metadata/"}),
        (3, "WAREHOUSE_ACCESS_DENIED", {"paimon": "/bucket-0/", "iceberg": "/data/"}),
    ],
    ids=["workspace", "published", "data"],
)
def test_what_may_not_be_written_is_told_by_name(
    told: Any, table_format: str, number: int, code: str, folder: str | dict[str, str]
) -> None:
    error = told[table_format][number]["error"]

    assert error["code"] == code, error
    assert not error["retryable"]
    assert (folder if isinstance(folder, str) else folder[table_format]) in error["message"]
    assert f"({told['user']})" in error["message"]
    assert "Traceback" not in error["message"]
    assert error["remedy"].startswith("Give this user the right to read and write there")


@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
def test_a_job_without_rights_leaves_the_table_as_it_was(told: Any, table_format: str) -> None:
    first, *_, rows = told[table_format]

    assert (first["status"], rows) == ("committed", 10)
