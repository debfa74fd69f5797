"""Cuts sorted runs at the same keys. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from spark_jobs.connectors.paimon.keyed.key_order import rows_up_to


class RunsPart(NamedTuple):
    """The records of all runs up to a key, by run; ``is_one_run``: no key has two of them."""

    records: pa.Table
    is_one_run: bool


class SortedRun:
    """The records of a sorted run, in ``chunks``, of which one at a time is in memory.

    ``is_unique``: no key occurs twice; otherwise all records of a key are in one chunk.
    """

    def __init__(
        self, chunks: Iterator[pa.Table], key: Sequence[str], *, is_unique: bool = True
    ) -> None:
        self._chunks = chunks
        self._key = key
        self._current: pa.Table | None = None
        self.is_unique = is_unique

    def advance(self) -> bool:
        """Whether there are more records; the next ones are current then."""
        while self._current is None or not self._current.num_rows:
            self._current = None  # The old chunk goes before the new one comes.
            self._current = next(self._chunks, None)
            if self._current is None:
                return False
        return True

    def last_key(self) -> tuple[Any, ...]:
        """The last key of the current records."""
        assert self._current is not None  # noqa: S101
        end = self._current.num_rows - 1
        return tuple(self._current.column(name)[end] for name in self._key)

    def take(self, key: Sequence[Any]) -> pa.Table:
        """The current records up to ``key``, which is at most ``last_key``, and are no more."""
        assert self._current is not None  # noqa: S101
        count = rows_up_to(self._current, self._key, key)
        found = self._current.slice(0, count)
        rest = self._current.slice(count)
        self._current = rest if rest.num_rows else None
        return found


def parts(runs: Sequence[SortedRun], key: Sequence[str]) -> Iterator[RunsPart]:
    """The records of all runs, as few as possible at a time."""
    while live := [run for run in runs if run.advance()]:
        end = min((run.last_key() for run in live), key=lambda each: tuple(map(_comparable, each)))
        yield _part(live, end)


def _part(runs: Sequence[SortedRun], end: Sequence[Any]) -> RunsPart:
    taken = [(run.take(end), run.is_unique) for run in runs]
    nonempty = [(records, is_unique) for records, is_unique in taken if records.num_rows]
    is_one_run = len(nonempty) == 1 and nonempty[0][1]
    return RunsPart(pa.concat_tables([records for records, _ in nonempty]), is_one_run)


def _comparable(scalar: pa.Scalar) -> Any:
    """A Python value in the order of the key; times as numbers, because Python lacks some."""
    return scalar.value if pa.types.is_temporal(scalar.type) else scalar.as_py()
