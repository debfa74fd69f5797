"""The Spark environment's Python, started once: importing its table library takes seconds."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_LOOP = """
import contextlib, io, json, sys, traceback
for line in sys.stdin:
    document = json.loads(line)
    sys.argv = ["-c", *document["arguments"]]
    printed, error = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(document["code"], {"__name__": "__main__"})
        except Exception:
            error = traceback.format_exc()
    print(json.dumps({"printed": printed.getvalue(), "error": error}), flush=True)
"""


@dataclass
class SparkPython:
    """Runs code for the tests, one piece after another."""

    process: subprocess.Popen[str]

    def run(self, code: str, *arguments: str) -> str:
        """Run code, which finds the arguments in ``sys.argv``; what it printed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"code": code, "arguments": arguments}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert not answer["error"], answer["error"]
        return str(answer["printed"])


@contextmanager
def running_spark_python(spark_env: Path) -> Iterator[SparkPython]:
    """The process, for as long as the context lasts."""
    process = subprocess.Popen(
        [spark_env / "bin" / "python", "-c", _LOOP],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield SparkPython(process)
