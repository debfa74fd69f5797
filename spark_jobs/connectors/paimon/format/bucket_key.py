"""The bucket that a data file belongs to. Runs on executors, too."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

POSTPONED: Final = -2


class BucketKey(NamedTuple):
    """The values of the partition columns, and the bucket within that partition.

    The files of bucket ``POSTPONED`` wait for their bucket: batch readers do not see them.
    """

    partition: tuple[Any, ...]
    bucket: int
