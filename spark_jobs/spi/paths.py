"""Paths as Spark's file readers take them."""

from __future__ import annotations

import re


def escape_glob(path: str) -> str:
    """The path as a glob pattern that matches only itself.

    Spark's hidden option ``__globPaths__`` would switch globbing off, but Spark 4.1 reads each path
    several times when several paths are given with it.
    """
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)
