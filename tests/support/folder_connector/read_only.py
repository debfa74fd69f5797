"""The folder connector without its writes: it declares no MERGE."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.spi.connector import Connector, ConnectorMetadata
from spark_jobs.spi.tables import PlannedFile, TableHandle


@dataclass(frozen=True)
class ReadOnlyMetadata(ConnectorMetadata):
    """Tables of ``real``, of which no change is declared."""

    real: ConnectorMetadata

    def load_table(self, name: TableName) -> TableHandle:
        return self.real.load_table(name)

    def create_table(self, name: TableName, spec: CreateTableSpec) -> bool:
        return self.real.create_table(name, spec)

    def plan_files(self, table: TableHandle) -> tuple[PlannedFile, ...]:
        return self.real.plan_files(table)


def read_only(connector: Connector) -> Connector:
    """What ``connector`` can read."""
    return Connector(ReadOnlyMetadata(connector.metadata), connector.scan, connector.storage)
