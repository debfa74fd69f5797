"""The identity of a running Spark task."""

from __future__ import annotations

from pyspark import TaskContext


def partition_number() -> int:
    """The number of the partition that this task computes, from 0."""
    return _context().partitionId()


def task_key() -> str:
    """A name for this task attempt that is unique within the application."""
    context = _context()
    return f"{context.stageId()}-{context.partitionId()}-{context.taskAttemptId()}"


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("this runs only inside a Spark task")
    return context
