"""The identity of a running Spark task."""

from __future__ import annotations

from pyspark import TaskContext


def task_key() -> str:
    """A name for this task attempt that is unique within the application."""
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("this runs only inside a Spark task")
    return f"{context.stageId()}-{context.partitionId()}-{context.taskAttemptId()}"
