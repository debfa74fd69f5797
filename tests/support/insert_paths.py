"""Runs all INSERTs of a process on one path, wherever it can run them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Literal, get_args
from unittest import mock

from spark_jobs.engine.insert import overwrite_run, streaming
from spark_jobs.engine.insert.streamed_rows import StreamedInsert

# streamed: tasks store what they compute. spilled: the same, but each leaves over the rows of all
# partitions except for the first that it meets. materialised: all rows are known before.
InsertPath = Literal["streamed", "spilled", "materialised"]
INSERT_PATHS: tuple[InsertPath, ...] = get_args(InsertPath)


@contextmanager
def forced_insert_path(path: InsertPath) -> Iterator[Counter[str]]:
    """INSERTs in the block run on ``path``; yields how many ran on it, and why others could not."""
    why, tally = overwrite_run.why_not_streamed, Counter[str]()

    def found(*arguments: Any) -> str | None:
        reason = "forced" if path == "materialised" else why(*arguments)
        ran = reason is None or path == "materialised"
        tally[path if ran else str(reason)] += 1
        return reason

    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(overwrite_run, "why_not_streamed", found))
        if path == "spilled":
            few = partial(StreamedInsert, most_open=1)
            patches.enter_context(mock.patch.object(streaming, "StreamedInsert", few))
        yield tally
