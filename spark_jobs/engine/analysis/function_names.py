"""The functions that very many expressions call, collected in the JVM.

Py4J would make several calls for each expression. Scala's collections take functions, which Java
makes of its own methods (``java.lang.invoke``).
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import SparkSession

from spark_jobs.engine.runtime.java_names import java_class

_CALL: Final = "org.apache.spark.sql.catalyst.analysis.UnresolvedFunction"
_BETWEEN: Final = "\0"


def called_functions(spark: SparkSession, expression: Any) -> set[str]:
    """The names of all functions below ``expression``, which was only parsed; parts are joined."""
    of_java = _OfJava(spark)
    found = java_class(spark, "scala.collection.mutable.ArrayBuffer")()
    expression.foreach(of_java.bound(found, "addOne"))
    calls = found.filter(of_java.bound(of_java.class_of(_CALL), "isInstance"))
    names = calls.map(of_java.method(_CALL, "nameParts")).distinct()
    return {".".join(_parts(each)) for each in str(names.mkString(_BETWEEN)).split(_BETWEEN)}


def _parts(written: str) -> list[str]:
    """The parts of a name as Scala writes a sequence: ``List(a, b)``."""
    return written.partition("(")[2].removesuffix(")").split(", ")


class _OfJava:
    """Functions of Scala that call methods without or with a single argument."""

    def __init__(self, spark: SparkSession) -> None:
        invoke = "java.lang.invoke"
        self._classes = java_class(spark, "java.lang.Class")
        self._lookup = java_class(spark, f"{invoke}.MethodHandles").publicLookup()
        self._proxies = java_class(spark, f"{invoke}.MethodHandleProxies")
        self._function = self.class_of("scala.Function1")

    def class_of(self, name: str) -> Any:
        """The class of this name."""
        return self._classes.forName(name)

    def bound(self, receiver: Any, name: str) -> Any:
        """A function of the argument of the receiver's only method of this name."""
        return self._made(self._found(receiver.getClass(), name).bindTo(receiver))

    def method(self, class_name: str, name: str) -> Any:
        """A function of the receiver of a method without arguments."""
        return self._made(self._found(self.class_of(class_name), name))

    def _found(self, of_class: Any, name: str) -> Any:
        methods = [m for m in of_class.getMethods() if m.getName() == name and not m.isBridge()]
        return self._lookup.unreflect(methods[0])

    def _made(self, handle: Any) -> Any:
        return self._proxies.asInterfaceInstance(self._function, handle)
