"""What pypaimon cannot do when tests append to tables."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from pypaimon.write.file_store_write import FileStoreWrite

# Paimon's default.
HIGHEST_LEVEL = 5

_sequence_numbers = FileStoreWrite._load_seq_number_stats


def appends_to_null_partitions() -> AbstractContextManager[Any]:
    """Within it, partitions with NULL values take appends where a table has fixed buckets.

    pypaimon 2.1 compares NULL with other values to look for the highest sequence number, which rows
    of append tables do not need.
    """
    return mock.patch.object(FileStoreWrite, "_load_seq_number_stats", _numbers)


def _numbers(write: Any, partition: tuple[Any, ...]) -> Any:
    return {} if None in partition else _sequence_numbers(write, partition)


def as_compacted(messages: Iterable[Any]) -> None:
    """Put new files of a table with a primary key where all readers look for them.

    pypaimon writes level 0, which is not seen with deletion vectors. The keys of a bucket's other
    files must be outside the range of the new ones.
    """
    for message in messages:
        for file in message.new_files:
            file.level = HIGHEST_LEVEL
