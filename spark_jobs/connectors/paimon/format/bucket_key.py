"""Which bucket a data file belongs to. Runs on executors, too."""

from __future__ import annotations

from typing import Any, NamedTuple


class BucketKey(NamedTuple):
    """Values of the partition columns, and the bucket in that partition."""

    partition: tuple[Any, ...]
    bucket: int
