"""The tables that sources read, each pinned once, with hashes of what they are. Driver only.

By the hashes, a later run can tell whether a table is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.request import TableName, TableSource
from spark_jobs.contract.source_names import called
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.spi.connector import ConnectorMetadata
    from spark_jobs.spi.tables import TableHandle


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)

# The former states that a statement reads, by the connection (empty: the statement's own), the
# table and how the request names them.
FormerStates = dict[tuple[str, TableName, TableVersion | None], "TableHandle"]


@dataclass(frozen=True, slots=True)
class PinnedTables:
    """Tables by their name and the former state of them that is read; None: as they are.

    ``former`` are the states that earlier attempts of the statement have read: all read the same.
    """

    tables: FormerStates = field(default_factory=dict)
    former: FormerStates = field(default_factory=dict)

    def table(
        self, spark: SparkSession, metadata: ConnectorMetadata, source: TableSource
    ) -> TableHandle:
        """The table that ``source`` names, pinned.

        Raises:
            JobError: as ``load_table`` and ``load_version``.
        """
        at = source.at
        key = source.connection or "", source.table, at
        if key not in self.tables:
            if at is None:
                self.tables[key] = metadata.load_table(source.table)
            else:
                self.tables[key] = self._former(spark, metadata, source, at)
        return self.tables[key]

    def keep(self, table: TableHandle) -> None:
        """Let ``table`` of the statement's own catalog be as it is pinned already."""
        self.tables["", table.name, None] = table

    def _former(
        self,
        spark: SparkSession,
        metadata: ConnectorMetadata,
        source: TableSource,
        at: TableVersion,
    ) -> TableHandle:
        key = source.connection or "", source.table, at
        if key not in self.former:
            try:
                millis = asked_millis(spark, at)
                self.former[key] = metadata.load_version(source.table, at, millis)
            except JobError as error:
                raise error.within(called(source.name)) from error.__cause__
        return self.former[key]


def asked_millis(spark: SparkSession, at: TableVersion) -> int | None:
    """The time of ``at`` in milliseconds since 1970; None: it has none.

    One without a zone is a time of the session's zone.
    """
    moment = at.moment
    if moment is None:
        return None
    if moment.tzinfo is None:
        text = moment.isoformat(sep=" ")
        query = f"SELECT unix_micros(CAST('{text}' AS TIMESTAMP_LTZ))"
        ((micros,),) = spark.sql(query).collect()
        return int(micros) // 1000
    return (moment - _EPOCH) // _MILLISECOND


def read_snapshots(
    tables: Sequence[tuple[str, TableHandle]], target: TableHandle
) -> dict[str, tuple[int, ...]]:
    """Which snapshots of which tables were read, by name; the target at its base is none of them.

    The name has that of the connection in front, if the table is in another catalog.
    """
    ids_by_name: dict[str, set[int]] = {}
    for name, table in tables:
        is_base = name == str(target.name) and table.snapshot_id == target.snapshot_id
        if table.snapshot_id is not None and not is_base:
            ids_by_name.setdefault(name, set()).add(table.snapshot_id)
    return {name: tuple(sorted(ids)) for name, ids in ids_by_name.items()}


def snapshot_digest(table: TableHandle) -> str:
    """SHA-256 (hex) of what only the pinned snapshot has."""
    return sha256(table.snapshot_mark)


def columns_digest(table: TableHandle, *, stored: bool = True) -> str:
    """SHA-256 (hex) of a table's columns and partitions; ``stored``: of exactly those stored ones.

    Else tables whose columns look alike have the same.
    """
    columns = [asdict(each) for each in (*table.columns, *table.opaque_columns)]
    fields = [asdict(each) for each in table.partitioned_by]
    return sha256([columns, fields, table.key_columns, table.schema_mark if stored else ""])


def sha256(document: object) -> str:
    """SHA-256 (hex) of a JSON document."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
