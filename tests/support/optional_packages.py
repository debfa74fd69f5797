"""Packages that README's environment has not, and without which tests are skipped.

`make test-readme` runs the suites of failures there: what users have who installed no extra.
"""

from __future__ import annotations

from typing import Final

import pytest

_WHY: Final = {
    "moto": "S3 and AWS Glue of the tests need moto, which only the tests' environment has",
    "psycopg2": "catalogs in PostgreSQL need pyiceberg[sql-postgres], an extra",
    "sqlalchemy": "catalogs of the type sql need pyiceberg[sql-sqlite], an extra",
}


def require_package(module: str) -> None:
    """Skip the test, with the reason, where the package is not installed."""
    pytest.importorskip(module, reason=_WHY[module])
