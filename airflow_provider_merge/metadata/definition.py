"""What checks before a job ask of a table: its columns and what jobs refuse of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from spark_jobs.contract.compaction import CompactSpec


class TableDefinition(Protocol):
    """One table's newest schema and properties, read once."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns in their order, name → type."""
        ...

    @property
    def partition_columns(self) -> Sequence[str]:
        """The names of the partition columns, in their order."""
        ...

    @property
    def key_columns(self) -> Sequence[str]:
        """The columns whose types no statement can change."""
        ...

    def refuse_source(self) -> None:
        """Refuse a table that no job reads.

        Raises:
            NotSupportedError: gives the reason.
        """
        ...

    def refuse_target(self) -> None:
        """The same for a table whose rows no job changes."""
        ...

    def refuse_uncompactable(self, spec: CompactSpec) -> None:
        """The same for a table that no job compacts as ``spec`` says."""
        ...
