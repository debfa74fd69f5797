"""What surrounds a session and can change rows: Java's locale, Hadoop's settings, extensions.

In a job of its own nothing of it does: ``own_session`` starts without it. Notebooks bring sessions
that were started by others. Two facts more about the driver's Java are here: who can reach its
processes, and in which character set it reads and writes names of files.
"""

from __future__ import annotations

import functools
import re
import socket
from collections.abc import Mapping
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from spark_jobs.contract.spark_settings import HADOOP_NAMES, deciding
from spark_jobs.engine.runtime.java_names import java_class, mapping
from spark_jobs.engine.runtime.progress import log
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError

_EXTENSIONS: Final = "spark.sql.extensions"
_EXECUTOR_OPTIONS: Final = "spark.executor.extraJavaOptions"
# Upper and lower case, and digits, depend on the locale, in Turkish and Nepali for example.
_ENGLISH: Final = (
    "-Duser.language=en -Duser.country=US -Duser.script= -Duser.variant= -Duser.extensions= "
    "-Duser.language.format=en -Duser.extensions.format="
)
_OWN: Final = {
    # For each DataFrame operation, PySpark sends the JVM the line of code it comes from: a third of
    # all that it sends.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Extensions of the parser and the optimizer that only lie on the class path.
    "spark.sql.extensions.test.loadFromCp": "false",
}
_LOCALE: Final = "java_method('java.util.Locale', 'getDefault')"
_DEFAULTS: Final = "-default.xml"
# The first of each makes Hadoop read its files again, which brings back what was unset.
_CONFIGURATIONS: Final = (
    "org.apache.hadoop.hdfs.HdfsConfiguration",
    "org.apache.hadoop.mapred.JobConf",
    "org.apache.hadoop.yarn.conf.YarnConfiguration",
)
# Set by Java when it starts, from the locale of its environment.
_CHARSET: Final = "sun.jnu.encoding"
_UTF8: Final = ("utf-8", "utf8")
_LOOPBACK: Final = "127.0.0.1"
_AUTHENTICATE: Final = "spark.authenticate"
_LOCAL: Final = re.compile(r"local(\[.*\])?")


def own_session() -> SparkSession:
    """Start Spark for a job, without the settings of the cluster that can change rows.

    It is protected from the network as far as ``network`` can.
    """
    SparkContext._ensure_initialized()  # noqa: SLF001
    conf: Any = SparkConf()
    # In one call; each line is a name, "=" and a value.
    parts = (line.partition("=") for line in conf.toDebugString().splitlines())
    settings = {name: value for name, _, value in parts}
    foreign = deciding(settings)
    for name in foreign:
        conf._jconf.remove(name)  # noqa: SLF001
    if foreign:
        log.info("not in effect, as they can change rows: %s", ", ".join(foreign))
    for name, value in {**_OWN, **protected(settings)}.items():
        conf.set(name, value)
    conf.set(_EXECUTOR_OPTIONS, f"{conf.get(_EXECUTOR_OPTIONS, '')} {_ENGLISH}".strip())
    SparkContext(conf=conf)
    spark = SparkSession.builder.getOrCreate()
    _unset_hadoop_settings(spark)
    return spark


def require_plain_surroundings(spark: SparkSession) -> None:
    """Set the driver's locale, and check what cannot be set once there is a session.

    Raises:
        NotSupportedError: naming the setting.
    """
    locales = java_class(spark, "java.util.Locale")
    locales.setDefault(locales.US)
    _require_plain_application(str(spark.sparkContext.applicationId))


@functools.lru_cache(1)
def _require_plain_application(_: str) -> None:
    """Check what the running application was started with, once."""
    spark = SparkSession.builder.getOrCreate()
    # Not that of PySpark, which adds what the JVM was started with.
    conf: Any = spark.sparkContext._jsc.getConf()  # noqa: SLF001
    if conf.get(_EXTENSIONS, ""):
        raise NotSupportedError(
            f"{_EXTENSIONS} is set, so the session may give statements another meaning",
            "Run the job on a session that was started without it.",
        )
    hadoop = _hadoop_settings(spark)
    if hadoop:
        raise NotSupportedError(
            f"Hadoop's {', '.join(hadoop)} can change which rows are read",
            "Unset it in the configuration of the session's Hadoop.",
        )
    if not re.match(r"local(\[|$)", str(spark.sparkContext.master)):
        _require_english_executors(spark)


def _require_english_executors(spark: SparkSession) -> None:
    tasks = spark.sparkContext.defaultParallelism
    found = {str(row[0]) for row in spark.range(0, tasks, 1, tasks).selectExpr(_LOCALE).collect()}
    others = sorted(locale for locale in found if locale.partition("_")[0] != "en")
    if others:
        raise NotSupportedError(
            f"the Java of an executor has the locale {others[0]}, which can change texts",
            f"Remove what sets it, such as _JAVA_OPTIONS in the environment of the executors, or "
            f"start the session with {_ENGLISH.partition(' ')[0]} in {_EXECUTOR_OPTIONS}.",
        )


def _unset_hadoop_settings(spark: SparkSession) -> None:
    settings = _hadoop_settings(spark)
    for name in _CONFIGURATIONS if settings else ():
        java_class(spark, name)()
    for name in settings:
        spark.sparkContext._jsc.hadoopConfiguration().unset(name)  # noqa: SLF001
    if settings:
        log.info("not in effect, as they can change rows, of Hadoop: %s", ", ".join(settings))


def _hadoop_settings(spark: SparkSession) -> list[str]:
    """The names of Hadoop's settings that can change rows and are not its own defaults."""
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    names = mapping(spark, configuration.getValByRegex(HADOOP_NAMES))
    return sorted(name for name in names if not _is_default(configuration, name))


def _is_default(configuration: Any, name: str) -> bool:
    sources = configuration.getPropertySources(name)
    return all(str(source).endswith(_DEFAULTS) for source in sources or ())


def require_utf8_names(spark: SparkSession | None) -> None:
    """Check, before anything is listed, that Java sees files whatever characters their names have.

    Without a session there is no Java.

    Raises:
        CatalogError: LOCALE_MISSING.
    """
    if spark is None:
        return
    charset = str(java_class(spark, "java.lang.System").getProperty(_CHARSET))
    if charset.lower() not in _UTF8:
        raise CatalogError(
            ErrorCode.LOCALE_MISSING,
            f"The driver's Java, on {socket.gethostname()}, knows names of files in {charset} "
            "only, and would not see others.",
            "Give the driver a UTF-8 locale that `locale -a` lists there: LC_ALL=C.UTF-8 in its "
            "environment; in cluster mode, spark.yarn.appMasterEnv.LC_ALL or "
            "spark.kubernetes.driverEnv.LC_ALL in conf.",
        )


def protected(settings: Mapping[str, str]) -> dict[str, str]:
    """What protects a job with these settings; what is set already stays as it is.

    Spark makes a secret for each application by itself, in memory or in what YARN and Kubernetes
    hand to executors. A standalone cluster has one secret for all, which it must set itself.
    """
    master = settings.get("spark.master", "")
    own = {}
    if _LOCAL.fullmatch(master):
        own = {"spark.driver.bindAddress": _LOOPBACK, "spark.driver.host": _LOOPBACK}
        own[_AUTHENTICATE] = "true"
    elif master.startswith("k8s://") or (master == "yarn" and _knows_secrets(settings)):
        own[_AUTHENTICATE] = "true"
    return {name: value for name, value in own.items() if name not in settings}


def _knows_secrets(settings: Mapping[str, str]) -> bool:
    """Whether a YARN application may have a secret of its own.

    In cluster mode its driver runs already. A shuffle service of the cluster has to be told to ask
    for secrets, or else executors cannot register with it.
    """
    shuffle = settings.get("spark.shuffle.service.enabled", "false")
    return settings.get("spark.submit.deployMode") != "cluster" and shuffle.lower() != "true"
