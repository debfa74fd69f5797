"""Which of Spark's settings a cluster and an operator's ``conf`` may set.

Every other setting of Spark SQL, and those of Hadoop that change what readers return, can change
what a statement means. A job runs under Spark's defaults for them, whatever the cluster says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_SQL: Final = "spark.sql."
_HADOOP: Final = "spark.hadoop."
# How much memory, time and parallelism a job takes, how it is planned, and what people see of it.
# No name of these changes the rows of a statement: ``python -m tests.settings`` tries each value.
_ALLOWED: Final = frozenset(
    {
        "artifact.isolation.enabled",  # PySpark sets it; workers find shipped packages by it
        "autoBroadcastJoinThreshold",
        "broadcastExchange.maxThreadThreshold",
        "broadcastTimeout",
        "codegen.cache.maxEntries",
        "codegen.comments",
        "codegen.factoryMode",
        "codegen.fallback",
        "codegen.hugeMethodLimit",
        "codegen.logging.maxLines",
        "codegen.maxFields",
        "codegen.methodSplitThreshold",
        "codegen.wholeStage",
        "columnVector.offheap.enabled",
        "debug.maxToStringFields",
        "event.truncate.length",
        "execution.arrow.maxBytesPerBatch",
        "execution.arrow.maxRecordsPerBatch",
        "execution.pandas.udf.buffer.size",
        "execution.pyspark.udf.daemonKillWorkerOnFlushFailure",
        "execution.pyspark.udf.faulthandler.enabled",
        "execution.pyspark.udf.idleTimeoutSeconds",
        "execution.pyspark.udf.killOnIdleTimeout",
        "execution.pyspark.udf.tracebackDumpIntervalSeconds",
        "execution.python.udf.buffer.size",
        "extensions.test.loadFromCp",  # jobs of their own set it: no extensions of the class path
        "files.maxPartitionBytes",
        "files.maxPartitionNum",
        "files.minPartitionNum",
        "files.openCostInBytes",
        "join.preferSortMergeJoin",
        "leafNodeDefaultParallelism",
        "maxBroadcastTableSize",
        "maxMetadataStringLength",
        "maxPlanStringLength",
        "maxSinglePartitionBytes",
        "objectHashAggregate.sortBased.fallbackThreshold",
        "orc.columnarReaderBatchSize",
        "parquet.columnarReaderBatchSize",
        "planner.pythonExecution.memory",
        "redaction.options.regex",
        "redaction.string.regex",
        "resultQueryStage.maxThreadThreshold",
        "shuffle.partitions",
        "shuffledHashJoinFactor",
        "shuffleExchange.maxThreadThreshold",
        "sort.enableRadixSort",
        "sources.parallelPartitionDiscovery.parallelism",
        "sources.parallelPartitionDiscovery.threshold",
        "subquery.maxThreadThreshold",
        "warehouse.dir",
    }
)
_ALLOWED_FAMILIES: Final = (
    "adaptive.",
    "cartesianProductExec.buffer.",
    "sortMergeJoinExec.buffer.",
    "ui.",
    "windowExec.buffer.",
)
# They name classes and rules of others.
_FORBIDDEN: Final = frozenset(
    {"adaptive.customCostEvaluatorClass", "adaptive.optimizer.excludedRules"}
)
# Filters of files, and options of the readers of formats.
_HADOOP_FAMILIES: Final = (
    "avro.",
    "hive.exec.orc.",
    "mapred.",
    "mapreduce.input.",
    "orc.",
    "parquet.",
    "textinputformat.",
)
_ANSI: Final = "Leave it out: values are computed and stored as ANSI SQL has it."
_INSTEAD: Final = {
    "spark.sql.ansi.enabled": _ANSI,
    "spark.sql.session.timezone": "Write session_time_zone=... of the operator.",
    "spark.sql.sources.partitionoverwritemode": "Write mode=... of InsertOverwriteOperator.",
    "spark.sql.storeassignmentpolicy": _ANSI,
}
_READERS: Final = frozenset({"spark.files.ignoreCorruptFiles", "spark.files.ignoreMissingFiles"})

# A regular expression of Java for the names of Hadoop's settings that ``decides_meaning`` is about.
HADOOP_NAMES: Final = f"^({'|'.join(_HADOOP_FAMILIES)})".replace(".", r"\.")


def decides_meaning(name: str) -> bool:
    """Whether a setting of this name can change what a statement means, or is of unknown effect."""
    if name.startswith(_SQL):
        return not _is_allowed(name.removeprefix(_SQL))
    return name in _READERS or name.removeprefix(_HADOOP).startswith(_HADOOP_FAMILIES)


def deciding(names: Iterable[str]) -> list[str]:
    """Those of the names for which ``decides_meaning`` is true, in order."""
    return sorted(filter(decides_meaning, names))


def instead_of(name: str) -> str:
    """What to write in the place of a setting for which ``decides_meaning`` is true."""
    return _INSTEAD.get(name.lower(), "Leave it out: jobs run under Spark's default of it.")


def _is_allowed(name: str) -> bool:
    return name in _ALLOWED or (name.startswith(_ALLOWED_FAMILIES) and name not in _FORBIDDEN)
