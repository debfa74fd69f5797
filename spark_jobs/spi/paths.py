"""Paths as Spark's file readers take them."""

from __future__ import annotations

import re


def escape_glob(path: str) -> str:
    """The path as a glob that matches nothing else.

    Spark's hidden option ``__globPaths__`` would switch globbing off, but in 4.1 several paths
    given with it are each read several times.
    """
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)
