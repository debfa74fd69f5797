"""What counts as a missing right, and where."""

from __future__ import annotations

import errno
import os

import pytest

from spark_jobs.contract.access_rights import denied, is_denial, is_refused_write, place_in
from spark_jobs.errors import ErrorCode

_STORE = "When initiating multiple part upload: AWS Error {} during CreateMultipartUpload operation"


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(errno.EACCES, "Permission denied"),
        OSError(errno.EPERM, "Operation not permitted"),
        PermissionError("HDFS, /a: AccessControlException"),
        OSError(_STORE.format("ACCESS_DENIED")),
    ],
)
def test_a_missing_right(error: OSError) -> None:
    assert is_denial(error)
    assert is_refused_write(error)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(_STORE.format("SLOW_DOWN")),
        ValueError("AWS Error ACCESS_DENIED"),
    ],
)
def test_another_failure(error: Exception) -> None:
    assert not is_refused_write(error)


def test_a_disk_that_can_only_be_read_is_told_where_it_is_known_to_be_a_warehouse() -> None:
    error = OSError(errno.EROFS, "Read-only file system")

    assert is_refused_write(error)
    assert not is_denial(error)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[Errno 13] Failed to open local file '/lake/_operations/a.json'", "workspace"),
        ("key 'lake/_operations/a' in bucket 'b'", "workspace"),
        ("key '_operations/a' in bucket 'b'", "workspace"),
        ("'/lake/_dry_run-17/result.json'", "workspace"),
        ("'/lake/shop.db/orders/bucket-0/a.parquet'", "warehouse"),
        ("'/lake/shop.db/my_operations/a.parquet'", "warehouse"),
    ],
)
def test_the_path_tells_the_place(text: str, place: str) -> None:
    assert place_in(text) == place


def test_the_error_names_path_and_user_and_is_final() -> None:
    error = denied("[Errno 13] Permission denied: '/lake/_operations/a'\nTraceback")

    assert error.code is ErrorCode.WORKSPACE_ACCESS_DENIED
    assert not error.retryable
    assert f"({os.geteuid()})" in error.message
    assert error.message.endswith("'/lake/_operations/a'")
