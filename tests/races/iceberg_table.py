"""The Iceberg table of a race, and the catalog that has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi.connector import Connector
from tests.judge.iceberg_server import IcebergRest, iceberg_rest_catalog, iceberg_toolchain
from tests.judge.iceberg_spark import CATALOG
from tests.races.statements import Row
from tests.support.paimon_tables import NAME

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("p", pa.int32())])
_FIELDS = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "v", LongType()),
    NestedField(3, "p", IntegerType()),
)


# How long a client waits for another one's commit to SQLite, in milliseconds.
_PATIENCE = 20_000


@dataclass(frozen=True)
class RaceCatalog:
    """A catalog by a job's ``options``, and by the properties that pyiceberg and Spark take."""

    options: Mapping[str, str]
    library: Mapping[str, str]
    java: Mapping[str, str]
    credentials: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def on_server(cls, server: IcebergRest) -> Self:
        """A REST catalog."""
        secret = {"token": server.secret}
        options = {"type": "rest", "uri": server.uri}
        return cls(options, server.properties, {**options, **secret}, secret)

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """A SQL catalog in a file of SQLite, with the tables beside it."""
        warehouse = {"warehouse": f"file://{folder}"}
        uri = f"sqlite:///{folder}/catalog.db?timeout={_PATIENCE // 1000}"
        options = {"type": "sql", "uri": uri, **warehouse}
        java = {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{folder}/catalog.db?busy_timeout={_PATIENCE}",
            "jdbc.schema-version": "V1",
            **warehouse,
        }
        return cls({**options, "catalog-name": CATALOG}, options, java)

    @property
    def plan(self) -> dict[str, Any]:
        """It as a part of a process's plan."""
        return {"catalog": asdict(self)}

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Self:
        """The catalog of a plan."""
        return cls(**plan["catalog"])

    def opened(self) -> Any:
        """It as pyiceberg opens it."""
        return load_catalog(CATALOG, **self.library)

    def spec(self, workspace: str) -> CatalogSpec:
        """It as a job's request names it."""
        return CatalogSpec("iceberg", workspace, self.options)

    def connector(self, workspace: str) -> Connector:
        """It as a job opens it."""
        return open_connector(self.spec(workspace), self.credentials)


def table_of(rows: Iterable[Row]) -> pa.Table:
    """The rows as pyiceberg takes them."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in rows], SCHEMA)


def made_anew(catalog: Any, *, marks: bool) -> Any:
    """The table, empty, in place of the one that is there; merged on read if it ``marks`` rows."""
    name = (NAME.database, NAME.table)
    with suppress(NoSuchTableError):
        catalog.drop_table(name)
    mode = "merge-on-read" if marks else "copy-on-write"
    properties = {
        "format-version": "2",
        "commit.retry.num-retries": "50",
        "commit.retry.max-wait-ms": "200",
        **{f"write.{each}.mode": mode for each in ("merge", "update", "delete")},
    }
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "p"))
    return catalog.create_table(name, _FIELDS, partition_spec=spec, properties=properties)


@contextmanager
def place(kind: str, folder: Path) -> Iterator[RaceCatalog]:
    """A catalog of SQLite in ``folder``, or on a server."""
    if kind == "sql":
        (folder / "lake").mkdir()
        yield RaceCatalog.in_folder(folder / "lake")
        return
    with iceberg_rest_catalog(iceberg_toolchain()) as server:
        yield RaceCatalog.on_server(server)
