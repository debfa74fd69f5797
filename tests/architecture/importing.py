"""Imports modules in a fresh interpreter that lacks some packages and in which no work succeeds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence

from tests.architecture.layout import ROOT

# What a module does when it is imported must not be noticed outside of the interpreter.
_PROGRAM = """
import importlib, json, socket, subprocess, sys

modules, blocked, allowed = json.loads(sys.argv[1])

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        stdlib = top in sys.stdlib_module_names
        if top in blocked or (allowed is not None and not stdlib and top not in allowed):
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

def refuse(what):
    def refused(*args, **kwargs):
        raise AssertionError(f"{what} during an import")
    return refused

sys.meta_path.insert(0, Blocker())
for name in PRELOADED:
    importlib.import_module(name)
socket.socket.connect = socket.socket.connect_ex = refuse("network access")
socket.create_connection = socket.getaddrinfo = refuse("network access")
# A Spark session starts with a JVM.
subprocess.Popen.__init__ = refuse("starting a program")
failures = {}
for name in modules:
    try:
        importlib.import_module(name)
    except BaseException as error:
        failures[name] = f"{type(error).__name__}: {error}"
loaded = sorted({name.partition(".")[0] for name in sys.modules} & set(blocked))
if loaded:
    failures["sys.modules"] = f"holds {loaded}"
print("\\n" + json.dumps(failures))
"""


def failures_of_importing(
    modules: Sequence[str],
    *,
    blocked: Iterable[str] = (),
    allowed: Iterable[str] | None = None,
    preloaded: Sequence[str] = (),
    environment: dict[str, str] | None = None,
) -> dict[str, str]:
    """Module → error, for each of ``modules`` that cannot be imported.

    ``blocked`` packages do not exist for them; with ``allowed``, neither does any other package
    outside of the standard library. ``preloaded`` modules may do work when they are imported.
    """
    arguments = json.dumps(
        [list(modules), sorted(blocked), None if allowed is None else sorted(allowed)]
    )
    finished = subprocess.run(
        [sys.executable, "-c", _PROGRAM.replace("PRELOADED", repr(tuple(preloaded))), arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    failures: dict[str, str] = json.loads(finished.stdout.splitlines()[-1])
    return failures
