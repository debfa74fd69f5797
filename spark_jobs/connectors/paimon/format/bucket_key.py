"""The bucket that a data file belongs to. Runs on executors, too."""

from __future__ import annotations

from typing import Any, NamedTuple


class BucketKey(NamedTuple):
    """The values of the partition columns, and the bucket within that partition."""

    partition: tuple[Any, ...]
    bucket: int
