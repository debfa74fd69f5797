"""Hypothesis without a stop-watch (machines are shared) and with the same examples on every run."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("contract", deadline=None, derandomize=True, database=None)
settings.load_profile("contract")
