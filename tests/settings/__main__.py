"""Runs about a hundred statements under each setting that this Spark registers, and each value.

``python -m tests.settings [--bare] [--names REGEX] [--minutes M]``. Rows, types and errors must be
those without the setting. ``--bare`` switches the isolation of jobs off, except for the settings
that a job fixes; it tells which settings would change rows. The exit code is 1 if any did.
"""

# ruff: noqa: T201 - a command speaks on the terminal

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

from spark_jobs.contract.spark_settings import decides_meaning
from spark_jobs.engine.runtime.session import fixed_meaning, fixed_settings, meaningful_settings
from tests.settings.outcomes import changed, outcomes, outcomes_under
from tests.settings.registry import names_of, trials
from tests.settings.statements import statements
from tests.support.spark_session import local_session

_ZONE = "UTC"
_SHOWN = 60


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.settings", description="Settings.")
    parser.add_argument("--bare", action="store_true", help="without the isolation of jobs")
    parser.add_argument("--names", default="", help="only settings that match")
    parser.add_argument("--minutes", type=float, help="try no setting after so long")
    parser.add_argument("--after", default="", help="only settings behind this one")
    parsed = parser.parse_args()
    names, values, changing = 0, 0, set()
    ends = time.monotonic() + 60 * parsed.minutes if parsed.minutes else None
    texts = {jobs: statements(jobs=jobs) for jobs in (False, True)}
    with tempfile.TemporaryDirectory() as folder, local_session(Path(folder), 2) as spark:

        def isolated(session):  # type: ignore[no-untyped-def]
            if parsed.bare:
                return fixed_settings(session, meaningful_settings(_ZONE))
            return fixed_meaning(session, _ZONE)

        with fixed_meaning(spark, _ZONE):
            expected = outcomes(spark, texts[True])
        for name, default in names_of(spark).items():
            if not re.search(parsed.names, name) or name <= parsed.after:
                continue
            if ends is not None and time.monotonic() > ends:
                print(f"stopped before {name}")
                break
            names += 1
            # What no job is run under needs no jobs: its sessions are all alike.
            asked = texts[not decides_meaning(name)]
            for trial in trials(spark, name, default):
                values += 1
                try:
                    found = outcomes_under(spark, trial, asked, isolated)
                except Exception as error:  # noqa: BLE001 - a setting of others may break Spark
                    print(f"{trial}: FAILED {str(error).splitlines()[0][:150]}", flush=True)
                    changing.add(name)
                    continue
                differing = changed(found, expected)
                if differing:
                    changing.add(name)
                    mark = "" if decides_meaning(name) else "ALLOWED "
                    print(f"{mark}{trial}: {len(differing)}", flush=True)
                    for statement, (right, wrong) in list(differing.items())[:2]:
                        place = next(
                            (i for i, pair in enumerate(zip(right, wrong)) if len(set(pair)) > 1), 0
                        )
                        start = max(0, place - 20)
                        print(f"    {statement[:_SHOWN]}: {right[start:start+_SHOWN]} -> {wrong[start:start+_SHOWN]}")
    print(f"{names} settings, {values} values: {len(changing)} settings changed something")
    return int(bool(changing))


if __name__ == "__main__":
    sys.exit(main())
