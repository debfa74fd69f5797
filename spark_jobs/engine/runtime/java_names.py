"""Java names that are looked up once.

Each ``functions.col`` of PySpark asks the JVM what ``org.apache.spark.sql.functions`` is and
whether it has a ``col``; a name without its package is tried in every imported package. In a small
merge these lookups were a sixth of the work of the driver's JVM. A chain of attributes, such as
``jvm.org.apache``, searches every jar for a class with the name of each package.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from py4j.java_gateway import JavaClass, get_method
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

# In no name or value of a setting.
_SEPARATOR: Final = "\0"
_FUNCTIONS: Final = ("col", "count", "expr", "hash", "lit", "not", "when")
# As PySpark spells them, with the static methods that it calls repeatedly.
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "PythonRDD": ("readRDDFromFile",),
    "PythonSQLUtils": ("ddlToJson",),
    "PythonUtils": ("getBroadcastThreshold", "toArray", "toSeq"),
    "SerDeUtil": ("pythonToJava", "toJavaArray"),
    "SimplePythonFunction": (),
    "functions": _FUNCTIONS,
    "org.apache.spark.sql.classic.SparkSession": ("getActiveSession", "setActiveSession"),
    "org.apache.spark.sql.functions": _FUNCTIONS,
}


def remember_java_names(spark: SparkSession) -> None:
    """Cache what the names mean in PySpark's view of the JVM of ``spark``."""
    jvm: Any = spark.sparkContext._jvm
    for name, members in _NAMES.items():
        java_type = getattr(jvm, name)
        if not isinstance(java_type, JavaClass):
            continue  # not in this version of Spark
        for member in members:
            with suppress(Py4JError):
                setattr(java_type, member, getattr(java_type, member))
        setattr(jvm, name, java_type)


def java_class(spark: SparkSession, name: str) -> Any:
    """The class with this fully qualified name, looked up once."""
    jvm: Any = spark.sparkContext._jvm
    if name not in vars(jvm):
        setattr(jvm, name, getattr(jvm, name))
    return vars(jvm)[name]


def java_constant(spark: SparkSession, name: str, member: str) -> Any:
    """What a static method without arguments always returns, called once."""
    jvm: Any = spark.sparkContext._jvm
    key = f"{name}.{member}()"
    if key not in vars(jvm):
        setattr(jvm, key, getattr(java_class(spark, name), member)())
    return vars(jvm)[key]


def scala_object(spark: SparkSession, name: str) -> Any:
    """The only instance of the Scala object with this fully qualified name."""
    return getattr(java_class(spark, f"{name}$"), "MODULE$")


def mapping(spark: SparkSession, java_map: Any) -> dict[str, str]:
    """A map of texts in Java in a few calls; Py4J would make several for each entry."""
    # Py4J hides Java's values() behind that of Python's mappings.
    parts = (java_map.keySet(), get_method(java_map, "values")())
    texts = java_class(spark, "java.lang.String")
    names, values = (texts.join(_SEPARATOR, part).split(_SEPARATOR) for part in parts)
    return {} if java_map.isEmpty() else dict(zip(names, values, strict=True))
