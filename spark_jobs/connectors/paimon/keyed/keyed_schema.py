"""The columns of data files of a table with a primary key. Runs on executors.

A file has one record per row, sorted by key: ``_KEY_<name>`` for each key column, the sequence
number, the row kind, then the table's columns (Paimon's ``KeyValue``).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from spark_jobs.connectors.paimon.keyed.merge_engines import MergeEngine


@dataclass(frozen=True, slots=True)
class KeyedSchema:
    """How rows are stored and merged.

    ``columns`` are all columns of the table, in its order, as in data files. ``key`` is the primary
    key without the partition keys, in its order. ``thin``: new files have the key columns only as
    ``_KEY_<name>``. ``looks_up``: compactions look up older records on higher levels.
    """

    columns: pa.Schema
    key: tuple[str, ...]
    engine: MergeEngine
    thin: bool = False
    looks_up: bool = False
