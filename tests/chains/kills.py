"""Drivers that are killed: forked from the tests' process, on the same JVM."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow.fs as pafs
from fsspec.implementations.local import LocalFileSystem

from spark_jobs.engine.marks.mark_notes import MarkNotes
from spark_jobs.engine.marks.marks import Marks
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.spi.connector import Connector
from tests.faults.storage import Steps, Visible, die_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The steps of a publication; ``after`` them is one, too.
NAMED = ("begun", "note", "publish", "result", "settle")
_SECONDS = 60
_KEPT: list[Any] = []


class _VisibleFiles(pafs.PyFileSystem):  # type: ignore[misc]
    """In place of pyarrow's own, also for those who ask whether files are local."""

    def __init__(self) -> None:
        super().__init__(Visible(LocalFileSystem(auto_mkdir=False)))


def forked(spark: SparkSession, action: Callable[[], Any], *, within: Sequence[Any] = ()) -> Any:
    """The answer of ``action`` in a process of its own; None: it was killed.

    ``within``: contexts in which it runs.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        _child(spark, action, within, writer)
    os.close(writer)
    text = b""
    with os.fdopen(reader, "rb") as stream:
        while True:
            ready, _, _ = select.select([stream], [], [], _SECONDS)
            if not ready:
                os.kill(pid, signal.SIGKILL)
                break
            part = os.read(stream.fileno(), 65536)
            if not part:
                break
            text += part
    os.waitpid(pid, 0)
    return json.loads(text) if text else None


def _child(
    spark: SparkSession, action: Callable[[], Any], within: Sequence[Any], writer: int
) -> None:
    """Never returns."""
    code = 1
    try:
        _with_own_connections(spark)
        with contextlib.ExitStack() as stack:
            for each in within:
                stack.enter_context(each)
            os.write(writer, json.dumps(action()).encode())
        code = 0
    except BaseException:  # noqa: BLE001 - the fork must not go on with the tests
        traceback.print_exc()
    finally:
        os._exit(code)


def _with_own_connections(spark: SparkSession) -> None:
    """The parent's are not used, nor closed."""
    client = spark._jvm._gateway_client  # type: ignore[union-attr]
    _KEPT.extend([client.deque, client.thread_connection, client.finalizer_deque])
    client.deque, client.thread_connection = deque(), local()
    client.finalizer_deque = deque()


@contextmanager
def dying_at(step: str, connector: Connector, *, after: bool) -> Iterator[None]:
    """A driver that dies at a step of a publication, in a process of its own."""
    owner: Any
    owner, name = {
        "begun": (type(connector.writes), "begin_merge"),
        "note": (MarkNotes, "add"),
        "publish": (type(connector.writes), "finish_merge"),
        "result": (OperationLog, "store"),
        "settle": (Marks, "settle"),
    }[step]
    real = getattr(owner, name)

    def dying(*arguments: Any, **more: Any) -> Any:
        if after:
            real(*arguments, **more)
        os.kill(os.getpid(), signal.SIGKILL)

    with mock.patch.object(owner, name, dying):
        yield


@contextmanager
def dying_within(roots: Sequence[Path], number: int, *, torn: bool) -> Iterator[None]:
    """A driver that dies at a change of files below ``roots``; for a process of its own."""
    with mock.patch.object(pafs, "LocalFileSystem", _VisibleFiles):
        for root in roots:
            Steps(root, die_at(number, torn=torn)).watch()
        yield
