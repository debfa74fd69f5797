"""Engines in a process of their own, with one Spark session, that do what they are asked."""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from benchmarks.comparison import session
from benchmarks.natives import engines, peers
from benchmarks.natives.data import Data
from benchmarks.natives.here import Here
from benchmarks.natives.here_iceberg import HereIceberg
from benchmarks.natives.plain import Plain
from benchmarks.natives.works import Work

ENGINES: Final[Mapping[str, Callable[[SparkSession], engines.Engine]]] = {
    "here": Here,
    "here-join": lambda spark: Here(spark, "join"),
    "here-located": lambda spark: Here(spark, "located"),
    "here-prepared": lambda spark: Here(spark, "prepared"),
    "here-iceberg": lambda spark: HereIceberg(spark, 2),
    "here-iceberg-v3": lambda spark: HereIceberg(spark, 3),
    "plain": Plain,
    "iceberg": lambda spark: peers.Iceberg(spark, 3),
    "iceberg-v2": lambda spark: peers.Iceberg(spark, 2),
    "delta": peers.Delta,
    "paimon": peers.PaimonSpark,
}
# Gives memory back after each collection, so that the next peak is that of the next statement.
_JAVA_OPTIONS: Final = "-XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=30"


class EngineError(Exception):
    """An engine failed; the text is its own."""


class Session:
    """A running process; ``names`` are those of ``ENGINES``, ``jars`` what they need."""

    def __init__(self, names: Sequence[str], jars: Sequence[Path], heap: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, list(names), [str(jar) for jar in jars], heap)
        self._process = context.Process(target=_serve, args=arguments)
        self._process.start()
        theirs.close()
        self._answer()

    @property
    def pid(self) -> int:
        """The process, below which are the JVM and Python's workers."""
        assert self._process.pid is not None
        return self._process.pid

    def call(self, method: str, engine: str, data: Data, work: Work) -> Any:
        """What a method of ``_Server`` returns.

        Raises:
            EngineError: it failed.
        """
        self._pipe.send((method, engine, data, work))
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(60)

    def _answer(self) -> Any:
        try:
            error, answer = self._pipe.recv()
        except EOFError:
            raise EngineError("the process has ended") from None
        if error is not None:
            raise EngineError(error)
        return answer


class _Server:
    """What a process does; each method is one of ``Session.call``."""

    def __init__(self, spark: SparkSession, names: Sequence[str]) -> None:
        self._spark = spark
        self._engines = {name: ENGINES[name](spark) for name in names}

    def load(self, engine: str, data: Data, work: Work) -> None:
        """Write the engine's own table unless it is there."""
        self._engines[engine].load(data, work)

    def restore(self, engine: str, data: Data, work: Work) -> str:
        """Make the table as it was before; the folder that it is in."""
        folder = self._engines[engine].restore(data, work)
        self._collect_garbage()
        return str(folder)

    def run(self, engine: str, data: Data, work: Work) -> float:
        """Run the statement; its seconds."""
        started = time.perf_counter()
        self._engines[engine].run(data, work)
        return time.perf_counter() - started

    def digest(self, engine: str, data: Data, work: Work) -> tuple[int, int]:
        """The rows of the table afterwards, as two numbers."""
        return engines.digest(self._engines[engine].rows(data, work))

    def told(self, engine: str, data: Data, work: Work) -> str:
        """What the engine says about its last statement."""
        return str(getattr(self._engines[engine], "told", ""))

    def drop(self, engine: str, data: Data, work: Work) -> None:
        """Remove the table."""
        self._engines[engine].drop()
        # What this finds unreachable, Spark's cleaner lets go of before the next collection.
        self._collect_garbage()

    def _collect_garbage(self) -> None:
        gc.collect()
        self._spark._jvm.System.gc()


def _serve(pipe: Connection, names: list[str], jars: list[str], heap: str) -> None:
    settings = {
        **peers.settings(names),
        "spark.jars": ",".join(jars),
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
        "spark.sql.parquet.compression.codec": "zstd",
    }
    spark = session(heap, {name: value for name, value in settings.items() if value})
    server = _Server(spark, names)
    pipe.send((None, os.getpid()))
    while True:
        try:
            method, *arguments = pipe.recv()
        except EOFError:
            break
        try:
            pipe.send((None, getattr(server, method)(*arguments)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the other process tells it
            text = "".join(traceback.format_exception_only(error)).strip()
            pipe.send((text[:2000], None))
    spark.stop()
