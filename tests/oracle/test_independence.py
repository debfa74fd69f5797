"""The oracle is neither Spark nor this project: importing it imports neither."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import tests.oracle.merge, tests.oracle.dialects
print([name for name in sys.modules if name.split(".")[0] in ("pyspark", "spark_jobs", "duckdb")])
"""


def test_the_oracle_imports_no_engine() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
