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
    java = _Java(spark)
    nodes, names = java.new("java.util.ArrayList"), java.new("java.util.HashSet")
    expression.foreach(java.function(java.bound(nodes, "add", "java.lang.Object")))
    call = java.named(_CALL)
    calls = java.sequence(nodes).filter(
        java.function(java.bound(call, "isInstance", "java.lang.Object"))
    )
    add = java.bound(names, "add", "java.lang.Object")
    calls.foreach(java.function(java.composed(java.method(call, "nameParts"), add)))
    found = java.sequence(java.new("java.util.ArrayList", names)).mkString(_BETWEEN)
    return {".".join(_parts(each)) for each in str(found).split(_BETWEEN)}


def _parts(written: str) -> list[str]:
    """The parts of a name as Scala writes a sequence: ``List(a, b)``."""
    return written.partition("(")[2].removesuffix(")").split(", ")


class _Java:
    """Functions of Scala that are methods of Java, called with one argument."""

    def __init__(self, spark: SparkSession) -> None:
        invoke = "java.lang.invoke"
        self._spark = spark
        self._handles = java_class(spark, f"{invoke}.MethodHandles")
        self._lookup = self._handles.publicLookup()
        self._any = java_class(spark, f"{invoke}.MethodType").genericMethodType(1)
        self._proxies = java_class(spark, f"{invoke}.MethodHandleProxies")

    def named(self, name: str) -> Any:
        """The class of this name."""
        return java_class(self._spark, "java.lang.Class").forName(name)

    def new(self, name: str, *arguments: Any) -> Any:
        """A new object of the class of this name."""
        return java_class(self._spark, name)(*arguments)

    def sequence(self, java_list: Any) -> Any:
        """A list of Java as a sequence of Scala."""
        return java_class(self._spark, "org.apache.spark.api.python.PythonUtils").toSeq(java_list)

    def method(self, of_class: Any, name: str, *types: str) -> Any:
        """The handle of a method; its first argument is the receiver."""
        gateway: Any = self._spark.sparkContext._gateway  # noqa: SLF001
        named = gateway.new_array(java_class(self._spark, "java.lang.Class"), len(types))
        for position, each in enumerate(types):
            named[position] = self.named(each)
        return self._lookup.unreflect(of_class.getMethod(name, named))

    def bound(self, receiver: Any, name: str, *types: str) -> Any:
        """The handle of a method of ``receiver``."""
        return self.method(receiver.getClass(), name, *types).bindTo(receiver)

    def composed(self, first: Any, second: Any) -> Any:
        """The handle of ``second(first(x))``."""
        return self._handles.filterReturnValue(first.asType(self._any), second.asType(self._any))

    def function(self, handle: Any) -> Any:
        """A handle as a function of Scala."""
        function = self.named("scala.Function1")
        return self._proxies.asInterfaceInstance(function, handle.asType(self._any))
