"""Runs about a hundred statements under each setting that this Spark registers, and each value.

Rows, types and errors must be those without the setting. ``--bare`` tells what would change them:
it leaves on only ``meaningful_settings``. The exit code is 1 if anything changed.
"""

# ruff: noqa: T201 - a command speaks on the terminal

from __future__ import annotations

import argparse
import itertools
import re
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.contract.spark_settings import decides_meaning
from spark_jobs.engine.runtime.session import fixed_meaning, fixed_settings, meaningful_settings
from tests.settings.jobs import job_outcomes
from tests.settings.outcomes import Outcomes, changed, in_effect, outcomes
from tests.settings.registry import Trial, names_of, session_with, trials
from tests.settings.statements import statements
from tests.support.spark_session import local_session

_ZONE = "UTC"
_SHOWN = 60
_REPORTED = 20
_QUICK, _ALL = statements(jobs=False), statements(jobs=True)


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.settings", description="Settings.")
    parser.add_argument("--bare", action="store_true", help="without the isolation of jobs")
    parser.add_argument("--names", default="", help="only settings that match")
    parser.add_argument("--after", default="", help="only settings whose names are greater")
    parser.add_argument("--allowed", action="store_true", help="only those a cluster may set")
    parser.add_argument("--quick", action="store_true", help="what decides: not in effect")
    parser.add_argument("--minutes", type=float, help="try no setting after so long")
    parsed = parser.parse_args()
    deadline = None if parsed.minutes is None else time.monotonic() + 60 * parsed.minutes
    values, changing = 0, set()
    with tempfile.TemporaryDirectory() as folder, local_session(Path(folder), 2) as spark:
        expected = _expected(spark, parsed)
        names = [
            (name, default)
            for name, default in names_of(spark).items()
            if re.search(parsed.names, name) and name > parsed.after
            if not (parsed.allowed and decides_meaning(name))
            if not parsed.quick or decides_meaning(name)
        ]
        print(f"{len(names)} settings", flush=True)
        for number, (name, default) in enumerate(names):
            if deadline is not None and time.monotonic() > deadline:
                print(f"stopped before {name}, number {number} of {len(names)}")
                break
            if number % _REPORTED == 0:
                print(f"{number} settings, {values} values", flush=True)
            for trial in trials(spark, name, default):
                values += 1
                if _is_told(trial, _under(spark, trial, parsed), expected):
                    changing.add(name)
    print(f"{values} values; {len(changing)} settings changed an outcome")
    return int(bool(changing))


def _expected(spark: SparkSession, parsed: argparse.Namespace) -> Outcomes:
    own = spark.newSession()
    with fixed_meaning(own, _ZONE):
        found = {"session": "started", "settings": in_effect(own)}
        found |= {} if parsed.quick else outcomes(own, _ALL)
    return {**found, **({} if parsed.bare or parsed.quick else job_outcomes(own))}


def _under(spark: SparkSession, trial: Trial, parsed: argparse.Namespace) -> Outcomes:
    """The outcomes under a setting; "session" is that of starting one."""
    is_allowed = not decides_meaning(trial.name)
    try:
        with session_with(spark, trial) as session:
            with _isolation(session, bare=parsed.bare):
                if is_allowed or parsed.bare:
                    found = dict(outcomes(session, _ALL if is_allowed else _QUICK))
                else:
                    # All such sessions are alike: they need no jobs of Spark.
                    found = {"settings": in_effect(session)}
                    found |= {} if parsed.quick else outcomes(session, _QUICK)
            if is_allowed and not parsed.bare:
                found |= job_outcomes(session)
    except Exception as error:  # noqa: BLE001 - of any kind: the command goes on
        return {"session": str(error)}
    return found


def _isolation(session: SparkSession, *, bare: bool) -> AbstractContextManager[object]:
    if bare:
        return fixed_settings(session, meaningful_settings(_ZONE))
    return fixed_meaning(session, _ZONE)


def _is_told(trial: Trial, found: Outcomes, expected: Outcomes) -> bool:
    """Print what differs, if anything does."""
    differing = changed(found, expected)
    if not differing:
        return False
    print(f"{trial}: {len(differing)}{'' if decides_meaning(trial.name) else ' (allowed)'}")
    for statement, (right, wrong) in itertools.islice(differing.items(), 2):
        pairs = enumerate(zip(right, wrong, strict=False))
        place = next((i for i, (one, other) in pairs if one != other), 0)
        part = slice(max(0, place - _SHOWN // 3), place + _SHOWN)
        print(f"    {statement[:_SHOWN]}: {right[part]} | {wrong[part]}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
