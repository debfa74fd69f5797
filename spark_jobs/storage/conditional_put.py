"""Exclusive files on S3-compatible stores: a put that fails if the name is taken. Driver only.

The server evaluates ``If-None-Match: *`` (RFC 9110, 13.1.2; Amazon's "conditional writes"). A store
that ignores the header would let two writers publish the same snapshot, so stores are probed first.
"""

from __future__ import annotations

import contextlib
import random
import time
from typing import Any, Final

from spark_jobs.contract.operation_files import CONDITIONAL_PUT_PROBE
from spark_jobs.errors import NotSupportedError
from spark_jobs.storage.s3_errors import access_error, certainly_refused, status_of

_PROBE_TEXT: Final = b"This file shows that the store refuses to replace it (If-None-Match).\n"
_TAKEN: Final = 412
# Another request for the same name is in flight; Amazon's documentation says to retry this one.
_BUSY: Final = 409
# The first jobs of a warehouse may all put the probe at once. The pause is a range in seconds.
_BUSY_PAUSES: Final = 5
_PAUSE: Final = (0.1, 0.5)


class ConditionalPutFiles:
    """Implements ``ExclusiveFiles`` for an object store; paths begin with the bucket."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def create(self, path: str, text: str) -> bool:
        """Put the object; False if the name is taken by another text.

        Called again with the same text after a failure, it shows the outcome of the first put.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return self._put(path, text.encode())
        except (BotoCoreError, ClientError) as error:
            problem = f"{path} could not be put: {access_error(error, path).message}"
            if certainly_refused(error):
                raise OSError(problem) from error
            raise TimeoutError(problem) from error

    def write_hint(self, path: str, text: str) -> None:
        """Replace the object."""
        from botocore.exceptions import BotoCoreError, ClientError

        bucket, _, key = path.partition("/")
        with contextlib.suppress(BotoCoreError, ClientError):
            self._client.put_object(Bucket=bucket, Key=key, Body=text.encode())

    def _put(self, path: str, body: bytes) -> bool:
        from botocore.exceptions import ClientError

        bucket, _, key = path.partition("/")
        try:
            self._client.put_object(Bucket=bucket, Key=key, Body=body, IfNoneMatch="*")
        except ClientError as error:
            if status_of(error) != _TAKEN:
                raise
            # A proxy may have sent this very put twice.
            holds: bytes = self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
            return holds == body
        return True


def require_conditional_put(client: Any, root: str) -> None:
    """Check that the warehouse is writable and that its store refuses to replace an object.

    Puts a small object below ``root`` (bucket and path) and leaves it there, so that the next check
    of the warehouse takes one request.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
        NotSupportedError: the store has no conditional put.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    bucket, _, folder = root.partition("/")
    key = f"{folder}/{CONDITIONAL_PUT_PROBE}" if folder else CONDITIONAL_PUT_PROBE
    replaced = busy = 0
    while replaced < 2:
        try:
            client.put_object(Bucket=bucket, Key=key, Body=_PROBE_TEXT, IfNoneMatch="*")
            replaced += 1
        except (BotoCoreError, ClientError) as error:
            if status_of(error) == _TAKEN:
                return
            if status_of(error) != _BUSY or busy == _BUSY_PAUSES:
                raise access_error(error, root) from error
            busy += 1
            time.sleep(random.uniform(*_PAUSE))  # noqa: S311 - only jitter
    raise NotSupportedError(
        f"The object store of s3://{root} replaced an object although it was asked not to "
        "(If-None-Match: *): two writers could publish the same snapshot and lose one.",
        "Use a store with conditional writes, or a newer version of this one.",
    )
