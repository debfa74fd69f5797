"""What pypaimon cannot do when tests append to tables."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from pypaimon.write.file_store_write import FileStoreWrite

_sequence_numbers = FileStoreWrite._load_seq_number_stats


def appends_to_null_partitions() -> AbstractContextManager[Any]:
    """Within it, partitions with NULL values take appends where a table has fixed buckets.

    pypaimon 2.1 compares NULL with other values to look for the highest sequence number, which rows
    of append tables do not need.
    """
    return mock.patch.object(FileStoreWrite, "_load_seq_number_stats", _numbers)


def _numbers(write: Any, partition: tuple[Any, ...]) -> Any:
    return {} if None in partition else _sequence_numbers(write, partition)
