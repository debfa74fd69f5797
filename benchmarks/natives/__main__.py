"""This project beside the native engines, on the same data, Spark and settings.

``python -m benchmarks.natives [--works core] [--engines here,plain,iceberg,delta] [--rows N]
[--sizes 1,4] [--rounds 3] [--paimon-jar PATH] [--table FILE] [--plot FILE]``, in ``.venv-spark``.

This project has a process with a Spark session of its own, all others share another one; only one
engine works at a time, and they take turns. Before its turn this project runs a small statement,
because Spark ends Python workers that were idle for a minute. ``here-join``, ``here-located`` and
``here-prepared`` are this project with a forced plan; ``here-iceberg`` is this project on the very
tables of ``iceberg`` in version 2, ``here-iceberg-v3`` in version 3; both need ``iceberg`` or
``iceberg-v2`` beside them or in an earlier run. Every round starts
from the same table: for each engine as many files of the same rows, 20 times the size. Before the
first round, which is not timed, the files leave the cache of the machine: it tells the bytes that
an engine reads, and the rows of all are compared after it. The jars come from Maven. ``paimon``
needs ``--paimon-jar``, and does not share its session with ``iceberg`` or ``delta``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks import lineitem
from benchmarks.natives import report, sessions, works
from benchmarks.natives.data import FOLDER, Data
from benchmarks.natives.report import Measured
from benchmarks.natives.sessions import EngineError, Session
from benchmarks.natives.usage import Counters, Peak
from benchmarks.natives.works import Work
from tests.judge.toolchain import TOOLS, Jar, fetched_jar

_JARS: Final = {
    "iceberg": (
        Jar(
            "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
            "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
        ),
    ),
    "delta": (
        Jar(
            "io.delta:delta-spark_4.1_2.13:4.4.0",
            "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
        ),
        Jar(
            "io.delta:delta-storage:4.4.0",
            "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
        ),
    ),
}
_RESULTS: Final = FOLDER / "results.jsonl"


def main() -> None:
    """The command line."""
    parsed = _arguments()
    FOLDER.mkdir(parents=True, exist_ok=True)
    jars = _jars(parsed.engines, parsed.paimon_jar)
    results: list[Measured] = []
    with ExitStack() as stack:
        running: dict[str, Session] = {}
        ours = [name for name in parsed.engines if name.startswith("here")]
        for names in (ours, [name for name in parsed.engines if name not in ours]):
            if names:
                session = Session(names, jars if names != ours else (), parsed.heap)
                stack.enter_context(closing(session))
                running |= dict.fromkeys(names, session)
        with _RESULTS.open("w") as kept:
            for size in parsed.sizes:
                for work in parsed.works:
                    for found in _measure(
                        running,
                        Data(parsed.rows * size, lineitem.FILES * size),
                        work,
                        parsed.rounds,
                    ):
                        kept.write(json.dumps(asdict(found)) + "\n")
                        kept.flush()
                        results.append(found)
    _write(parsed.table, report.table(results) + "\n")
    _write(parsed.plot, report.chart(results))
    print(report.table(results))


def _measure(
    running: Mapping[str, Session], data: Data, work: Work, rounds: int
) -> Iterable[Measured]:
    """Let the engines take turns; the first round warms up and compares."""
    turns: dict[str, list[Measured]] = {name: [] for name in running}
    failed: dict[str, str] = {}
    digests: dict[str, tuple[int, int]] = {}
    # This project takes the tables of others.
    for name in sorted(turns, key=lambda name: name.startswith("here")):
        running[name].call("load", name, data, work)
    for number in range(rounds + 1):
        for name in [name for name in turns if name not in failed]:
            try:
                turn, digest = _turn(running[name], name, data, work, is_first=not number)
            except EngineError as error:
                failed[name] = str(error)
                print(f"{data.rows:,} {work.name} {name}: {error}", flush=True)
                continue
            turns[name].append(turn)
            if digest is not None:
                digests[name] = digest
        if len(set(digests.values())) > 1:
            raise SystemExit(f"{work.name}: the engines have different rows: {digests}")
    for name, done in turns.items():
        if name in failed:
            yield Measured(work.name, data.rows, name, error=failed[name])
        else:
            yield _together(done, digests[name][0])


def _turn(
    session: Session, engine: str, data: Data, work: Work, *, is_first: bool
) -> tuple[Measured, tuple[int, int] | None]:
    """One run of one engine, and its rows after the first one."""
    folder = session.call("restore", engine, data, work)
    if is_first:
        _leave_cache(Path(folder), data.folder / "sources", *data.folder.glob("landed-*"))
    before = Counters.of(session.pid)
    with Peak(session.pid) as peak:
        seconds = session.call("run", engine, data, work)
    used = Counters.of(session.pid).since(before)
    told = session.call("told", engine, data, work)
    digest = session.call("digest", engine, data, work) if is_first else None
    session.call("drop", engine, data, work)
    print(
        f"{data.rows:,} {work.name} {engine}{' (first)' if is_first else ''}: {seconds:.2f} s, "
        f"{used.cpu:.1f} s of CPU, {peak.together / 2**20:,.0f} MiB {told}",
        flush=True,
    )
    memory = (peak.java, peak.python, peak.together)
    measured = Measured(
        work.name, data.rows, engine, (seconds,), used.cpu, *memory, used.read, used.written
    )
    return measured, digest


def _together(turns: Sequence[Measured], rows: int) -> Measured:
    """The rounds of an engine as one; the first one counts for bytes and memory only."""
    first, *warm = turns
    return Measured(
        first.work,
        first.size,
        first.engine,
        tuple(turn.seconds[0] for turn in warm),
        statistics.median(turn.cpu for turn in warm),
        max(turn.java for turn in turns),
        max(turn.python for turn in turns),
        max(turn.together for turn in turns),
        first.read,
        first.written,
        rows,
    )


def _leave_cache(*folders: Path) -> None:
    """Let the machine forget the content of files, so that reading them can be counted."""
    os.sync()
    for folder in folders:
        for path in filter(Path.is_file, folder.rglob("*")):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _jars(engines: Sequence[str], paimon: Path | None) -> list[Path]:
    TOOLS.mkdir(parents=True, exist_ok=True)
    kinds = dict.fromkeys(name.partition("-")[0] for name in engines)
    jars = [fetched_jar(jar) for kind in kinds for jar in _JARS.get(kind, ())]
    return [*jars, paimon] if paimon else jars


def _write(path: Path | None, text: str) -> None:
    if path is not None:
        path.write_text(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--works", default="core", help="names, core or all, by commas")
    parser.add_argument("--engines", default="here,plain,iceberg,delta")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--sizes", default="1", help="multiples of --rows, by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--heap", default="6g")
    parser.add_argument("--paimon-jar", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--plot", type=Path)
    parsed = parser.parse_args()
    parsed.engines = parsed.engines.split(",")
    parsed.sizes = [int(size) for size in parsed.sizes.split(",")]
    try:
        parsed.works = works.works_named(parsed.works.split(","))
    except ValueError as error:
        parser.error(str(error))
    if unknown := set(parsed.engines) - sessions.ENGINES.keys():
        parser.error(f"no such engine: {', '.join(sorted(unknown))}")
    if "paimon" in parsed.engines:
        if parsed.paimon_jar is None:
            parser.error("paimon needs --paimon-jar")
        if {"iceberg", "iceberg-v2", "delta"} & set(parsed.engines):
            parser.error("paimon does not share a session with iceberg or delta: measure it alone")
    return parsed


if __name__ == "__main__":
    sys.exit(main())
