"""docs/errors.md has every error code, and tells the truth about retries."""

from __future__ import annotations

import re
from pathlib import Path

from spark_jobs.errors import ErrorCode

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
_ROW = re.compile(
    r'^\| <a id="([a-z_]+)"></a>`([A-Z_]+)` \| .+ \| .+ \| (yes|no)[^|]* \|$', re.MULTILINE
)


def test_every_code_once_and_whether_airflow_retries():
    rows = _ROW.findall(PAGE.read_text())
    assert sorted(rows) == sorted(
        (code.name.lower(), code.name, "yes" if code.retryable else "no") for code in ErrorCode
    )
