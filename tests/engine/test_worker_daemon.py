"""A worker whose socket Spark has closed ends without a trace in the log."""

from __future__ import annotations

import subprocess
import sys

_WORKER = """
import os, socket, sys
from spark_jobs.worker_daemon import ending_quietly

def work(infile, outfile):
    outfile.write(b"what nobody reads")
    sys.exit(-1)

ours, of_spark = socket.socketpair()
outfile = os.fdopen(os.dup(ours.fileno()), "wb")
if {closed}:
    of_spark.close()
ending_quietly(work)(None, outfile)
"""


def _ended(*, closed: bool) -> tuple[int, str]:
    ended = subprocess.run(
        [sys.executable, "-c", _WORKER.format(closed=closed)],
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stderr


def test_nobody_reads() -> None:
    assert _ended(closed=True) == (1, "")


def test_somebody_reads() -> None:
    assert _ended(closed=False) == (255, "")
