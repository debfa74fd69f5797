"""What Spark knows about queries besides their rows: estimates, metrics, running tasks."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession


def observed_metric(frame: DataFrame, observation: str) -> int:
    """The first metric of an observation of a collected frame; 0 if it is absent.

    ``Observation.get`` would wait forever if the optimizer dropped the node.
    """
    metrics = frame._jdf.queryExecution().observedMetrics()
    return int(metrics.apply(observation).getLong(0)) if metrics.contains(observation) else 0


def plan_bytes(frame: DataFrame) -> int:
    """The size of the frame in bytes, as Spark's optimizer estimates it."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def running_tasks(spark: SparkSession) -> int:
    """The number of this application's running tasks, including those of failed stages."""
    tracker = spark._jsparkSession.sparkContext().statusTracker()
    return sum(int(each.numRunningTasks()) for each in tracker.getExecutorInfos())
