"""What Spark knows of queries beside their rows: estimates, metrics, running tasks."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession


def observed_metric(frame: DataFrame, observation: str) -> int:
    """The first metric of an observation of a frame that has been collected; 0 when it is absent.

    ``Observation.get`` would wait for ever where the optimizer dropped the node.
    """
    metrics = frame._jdf.queryExecution().observedMetrics()
    return int(metrics.apply(observation).getLong(0)) if metrics.contains(observation) else 0


def plan_bytes(frame: DataFrame) -> int:
    """About how many bytes the frame has, as Spark's optimizer estimates them."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def running_tasks(spark: SparkSession) -> int:
    """Tasks of this application that run at this moment, those of failed stages included."""
    tracker = spark._jsparkSession.sparkContext().statusTracker()
    return sum(int(each.numRunningTasks()) for each in tracker.getExecutorInfos())
