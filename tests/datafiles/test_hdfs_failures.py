"""Failures of HDFS' client as errors that tell what a retry may overcome."""

from __future__ import annotations

import pytest

from spark_jobs.storage.hdfs import hdfs_failures


@pytest.mark.parametrize(
    ("failure", "kind", "text"),
    [
        (FileNotFoundError("x"), FileNotFoundError, "there is no /a"),
        (FileExistsError("x"), FileExistsError, "/a exists already"),
        (PermissionError("not yours"), PermissionError, "HDFS, /a: not yours"),
        (OSError("no route"), ConnectionError, "HDFS, /a: no route"),
        (RuntimeError("RPCError(AccessControlException)"), PermissionError, "AccessControl"),
        (RuntimeError("RPCError(SafeModeException)"), OSError, "SafeMode"),
        (RuntimeError("DataTransferError(lost)"), ConnectionError, "lost"),
    ],
)
def test_failures_keep_their_kind(failure: Exception, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as raised, hdfs_failures("/a"):
        raise failure

    assert type(raised.value) is kind
