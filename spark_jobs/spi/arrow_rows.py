"""Rows that executors read without the JVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_jobs.spi.arrow_tasks import ArrowFunction


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Rows that executors read without the JVM.

    ``function`` is a picklable function for ``mapInArrow``. It turns task numbers into batches
    whose first columns are the requested ones, in that order. ``files`` lists, for each task, the
    ordinals of the files that it reads. No file is in two tasks, and a task yields the rows of a
    file together and in the file's order.
    """

    function: ArrowFunction
    files: tuple[tuple[int, ...], ...]
