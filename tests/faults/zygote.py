"""A process that has imported everything and forks one driver for each command.

Reads a JSON command per line and answers with a line. Forking saves the seconds that importing
takes; the forked process dies or ends, it never comes back here.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.merges import Work, run, run_until_done
from tests.faults.storage import Steps, die_at


def _forked(action: Callable[[], Any]) -> tuple[int, int]:
    """A new process that does ``action``; its pid, and where its JSON answer can be read."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    code = 1
    try:
        os.write(writer, json.dumps(action()).encode())
        code = 0
    except BaseException:  # noqa: BLE001 - the fork must not fall back into the loop
        traceback.print_exc()
    finally:
        os._exit(code)


def _answer(pid: int, reader: int) -> dict[str, Any]:
    with os.fdopen(reader, "rb") as stream:
        text = stream.read()
    status = os.waitpid(pid, 0)[1]
    signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return {"signal": signal, "value": json.loads(text) if text else None}


def _steps(warehouse: Path, work: Work) -> list[list[str]]:
    seen: list[list[str]] = []
    names = Steps(warehouse, lambda _, event, path: seen.append([event, path]))
    names.watch()
    run(warehouse, work, 1)
    return seen


def _dies(warehouse: Path, work: Work, step: int, torn: bool) -> None:
    Steps(warehouse, die_at(step, torn=torn)).watch()
    run(warehouse, work, 1)


def _races(warehouse: Path, works: list[Work]) -> list[dict[str, Any]]:
    """Each work in a process of its own; all publish at the same time."""
    go_read, go_write = os.pipe()
    ready_read, ready_write = os.pipe()

    def wait() -> None:
        os.write(ready_write, b"r")
        os.read(go_read, 1)

    def once(work: Work) -> Any:
        error = run(warehouse, work, 1, wait).error
        return error.code if error else "committed"

    children = [_forked(lambda w=work: once(w)) for work in works]  # type: ignore[misc]
    for _ in works:
        os.read(ready_read, 1)
    os.write(go_write, b"g" * len(works))
    answers = [_answer(*child) for child in children]
    for descriptor in (go_read, go_write, ready_read, ready_write):
        os.close(descriptor)
    return answers


def _obey(command: dict[str, Any]) -> Any:
    warehouse = Path(command["warehouse"])
    works = [Work(**each) for each in command["works"]]
    if command["do"] == "steps":
        return _answer(*_forked(lambda: _steps(warehouse, works[0])))
    if command["do"] == "die":
        step, torn = command["step"], command["torn"]
        return _answer(*_forked(lambda: _dies(warehouse, works[0], step, torn)))
    if command["do"] == "race":
        return _races(warehouse, works)
    children = [
        _forked(lambda w=work: run_until_done(warehouse, w))  # type: ignore[misc]
        for work in works
    ]
    return [_answer(*child) for child in children]


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_obey(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
