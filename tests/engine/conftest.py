from __future__ import annotations

from tests.conformance.conftest import make_table, seeds

__all__ = ["make_table", "seeds"]
