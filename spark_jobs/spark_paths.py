"""Paths as Spark's file readers take them."""

from __future__ import annotations

import re


def escape_glob(path: str) -> str:
    """The path as a glob pattern that matches only itself.

    Spark's hidden option ``__globPaths__`` would switch globbing off, but Spark 4.1 reads each path
    several times when several paths are given with it.
    """
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def is_data_file(name: str) -> bool:
    """Whether Spark reads rows from a file of this name (its ``PartitioningAwareFileIndex``).

    It has the same rule for folders below the one that is read.
    """
    is_hidden = (name.startswith("_") and "=" not in name) or name.startswith(".")
    return not is_hidden and not name.endswith("._COPYING_")


def is_readable(name: str) -> bool:
    """Whether Spark reads rows from any file of this name: Hadoop opens none with a colon."""
    return is_data_file(name) and ":" not in name
