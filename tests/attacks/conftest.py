"""Attacks run where what they attack runs: those in ``airflow`` in Airflow's environment.

All others run in the Spark environment.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_HERE = Path(__file__).parent
_HAS_AIRFLOW = find_spec("airflow") is not None

collect_ignore = (
    [str(path) for path in sorted(_HERE.glob("test_*.py"))] if _HAS_AIRFLOW else ["airflow"]
)
