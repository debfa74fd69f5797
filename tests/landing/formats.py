"""The formats of landed files, each with a check of the random file of a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.landing.random_csv import check_csv
from tests.landing.random_json import check_json

# A seed and a folder to write to; returns what was done, by name. AssertionError: it was wrong.
Check = Callable[[int, Path], Counter[str]]
FORMATS: Mapping[str, Check] = {"csv": check_csv, "json": check_json}
