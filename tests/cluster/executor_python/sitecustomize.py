"""Loaded by every Python of a job that a test starts: stops the first process at a named point.

``FAULT_FOLDER`` holds the files ``armed-<point>``; whoever takes one away writes its pid to
``hit-<point>`` and waits to be killed, or for the file ``release`` or ``release-<point>``. The
points: ``sink`` (a task has written its first file's rows, but not its footer), ``publish`` and
``published`` (the driver is about to make, and has just made, the snapshot), ``enter-1``, … (it is
about to begin a statement or another attempt) and ``look-1``, … (it has written all files and is
about to ask whether it may publish). Each sink task also leaves ``seen-<pid>.json``, which tells
what its Python is. ``FAULT_PLAN`` is the physical plan of merges.
The product knows nothing of this.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

_FOLDER = Path(os.environ["FAULT_FOLDER"])
_WRITERS = {
    "spark_jobs.datafiles.parquet.writer": "sink",
    "spark_jobs.datafiles.parquet.splice": "sink",
}
# What a ``with`` calls at its end.
_BETWEEN = ("contextlib", "pyarrow.parquet.core")
_FOOTERS = "spark_jobs.datafiles.parquet.footer"
_LIMITS = "spark_jobs.engine.merge.physical_plan"
_FENCE = "spark_jobs.engine.runtime.permission"
_PERMISSION = "spark_jobs.engine.runtime.permission"
_UNWANTED = ("pypaimon", "pyiceberg", "duckdb", "airflow", "airflow_provider_merge")


def _reach(point: str) -> None:
    mine = _FOLDER / f"taken-{point}-{os.getpid()}"
    try:
        (_FOLDER / f"armed-{point}").rename(mine)
    except FileNotFoundError:
        return
    mine.write_text(str(os.getpid()))
    mine.rename(_FOLDER / f"hit-{point}")
    released = (_FOLDER / "release", _FOLDER / f"release-{point}")
    while not any(each.exists() for each in released):
        time.sleep(0.05)


def _tell() -> None:
    part = _FOLDER / f"seen-{os.getpid()}"
    found = {
        "python": sys.executable,
        "spark_jobs": sys.modules["spark_jobs"].__file__,
        "importable": [name for name in _UNWANTED if importlib.util.find_spec(name) is not None],
    }
    part.write_text(json.dumps(found))
    part.rename(part.with_suffix(".json"))


def _watch_parquet_writers() -> None:
    import pyarrow.parquet as pq

    pq.ParquetWriter.close = _watched(pq.ParquetWriter.close)


def _watched(end_of_file: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What writes a footer, behind a look at who asks for it."""

    def watched(argument: Any) -> Any:
        point = _point_of(sys._getframe(1))
        if point == "sink":
            _tell()
        if point is not None:
            _reach(point)
        return end_of_file(argument)

    return watched


def _point_of(frame: FrameType | None) -> str | None:
    """The point of the writer that ends its file, by ``close`` or by a ``with``."""
    while frame is not None and frame.f_globals["__name__"] in _BETWEEN:
        frame = frame.f_back
    return None if frame is None else _WRITERS.get(frame.f_globals["__name__"])


def _watch_footers(module: ModuleType) -> None:
    module.framed = _watched(module.framed)


def _watch_fence(module: ModuleType) -> None:
    module.Fence.enter = _numbered("enter", module.Fence.enter)


def _watch_permission(module: ModuleType) -> None:
    module.Permission.require = _numbered("look", module.Permission.require)


def _numbered(point: str, step: Callable[[Any], None]) -> Callable[[Any], None]:
    numbers = itertools.count(1)

    def watched(argument: Any) -> None:
        _reach(f"{point}-{next(numbers)}")
        step(argument)

    return watched


def _force_plan(module: ModuleType) -> None:
    limits = module.PlanLimits
    defaults = dict(zip(limits.__match_args__, limits.__init__.__defaults__, strict=True))
    defaults["plan"] = os.environ["FAULT_PLAN"]
    limits.__init__.__defaults__ = tuple(defaults.values())


class _Changing(Loader):
    """Loads a module and changes it."""

    def __init__(self, loader: Loader, change: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._change = change

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._change(module)


class _Finder(MetaPathFinder):
    def __init__(self, wanted: str, change: Callable[[ModuleType], None]) -> None:
        self._wanted = wanted
        self._change = change

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._wanted:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        spec.loader = _Changing(spec.loader, self._change)
        return spec


def _watch_snapshots(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.link" and "/snapshot-" in str(arguments[1]):
        _reach("publish")
    if event == "os.rename" and str(arguments[1]).endswith("/LATEST"):
        _reach("published")


_watch_parquet_writers()
sys.meta_path.insert(0, _Finder(_FOOTERS, _watch_footers))
sys.meta_path.insert(0, _Finder(_FENCE, _watch_fence))
sys.meta_path.insert(0, _Finder(_PERMISSION, _watch_permission))
if "FAULT_PLAN" in os.environ:
    sys.meta_path.insert(0, _Finder(_LIMITS, _force_plan))
sys.addaudithook(_watch_snapshots)
