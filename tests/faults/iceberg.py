"""The same merges on an Iceberg table, whose catalog is a file of SQLite, a REST server or Glue.

A driver asks the catalog for its commit in a step of its own: it can die before and after it.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import ClearingStatement, TruncateTableSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.connectors.iceberg.ids_here import ids_here
from tests.faults.drivers import Drivers
from tests.faults.looking import Seen
from tests.faults.matrix import Matrix
from tests.faults.merges import CHANGED, OLD, OTHER, Row, Work
from tests.faults.storage import ASKED, visible_file_system
from tests.judge.iceberg_server import IcebergRest
from tests.support.iceberg_changes import deleted, inserted, updated
from tests.support.iceberg_version_3 import append, upgrade, upgrade_on_server
from tests.support.optional_packages import require_package
from tests.support.paimon_tables import NAME
from tests.support.stores import REGION, ObjectStore

Server = IcebergRest | ObjectStore
_SCHEMA = pa.schema([("id", pa.int32()), ("v", pa.string()), ("p", pa.int32())])


@dataclass(frozen=True)
class IcebergWork(Work):
    """``server`` is the address of a REST catalog or of ``glue``, with its token or key.

    ``version`` is that of the table's format. ``clears``: instead of a merge, a partition is
    cleared, to which half of the rows of a file of an older spec belong.
    """

    server: str = ""
    token: str = ""
    glue: bool = False
    version: int = 2
    clears: bool = False

    @property
    def expected(self) -> list[Row]:
        """The rows afterwards, on a table of OLD."""
        return [row for row in OLD if row["p"] == 1] if self.clears else super().expected

    @property
    def statement(self) -> ClearingStatement | None:
        """What clears a partition."""
        return TruncateTableSpec({"p": "0"}) if self.clears else None

    @property
    def rewrite_share(self) -> float | None:
        """Every change marks rows, if the table allows it."""
        return 1.0

    def catalog(self, warehouse: Path | str) -> CatalogSpec:
        """The catalog for a job; the token is left out."""
        options = {"type": "rest", "uri": self.server}
        if self.glue:
            place = {"warehouse": f"file://{warehouse}", "client.region": REGION}
            options = {"type": "glue", "uri": self.server, **place}
        elif not self.server:
            uri = f"sqlite:///{warehouse}/catalog.db"
            options = {"type": "sql", "uri": uri, "catalog-name": "faults"}
        return CatalogSpec("iceberg", str(warehouse), options)

    @property
    def credentials(self) -> dict[str, str]:
        """The secret options of the catalog."""
        if self.glue:
            return {"client.access-key-id": "tests", "client.secret-access-key": self.token}
        return {"token": self.token} if self.server else {}

    def opened(self, warehouse: Path | str) -> Connector:
        """The connector, all of whose changes and commits are visible to audit hooks from now on.

        Only for a process that does nothing else.
        """
        mock.patch.object(pafs, "LocalFileSystem", visible_file_system).start()
        connector = open_connector(self.catalog(warehouse), self.credentials)
        library = connector.writes.catalog.opened  # type: ignore[attr-defined]
        commit = library.commit_table

        def commit_table(*arguments: Any) -> Any:
            sys.audit(ASKED, f"{warehouse}/catalog", partial(commit, *arguments))
            return commit(*arguments)

        library.commit_table = commit_table
        return connector

    def batches(self, connector: Connector, table: TableHandle) -> list[pa.RecordBatch]:
        """The change rows as a sink task gets them."""
        new = inserted(connector, table, [self.new_row])
        if not self.changes:
            return [new]
        return [updated(0, 1, case=0, v=CHANGED["v"]), deleted(0, 2, case=1, v=pa.string()), new]

    def library(self, warehouse: Path) -> Any:
        """The catalog, opened with pyiceberg."""
        from pyiceberg.catalog import load_catalog

        if self.glue:
            return _glue_library(self, warehouse)
        if self.server:
            return load_catalog("rest", type="rest", uri=self.server, token=self.token)
        uri = f"sqlite:///{warehouse}/catalog.db"
        return load_catalog("faults", type="sql", uri=uri, warehouse=f"file://{warehouse}")

    def append_by_others(self, warehouse: Path) -> None:
        """Another engine appends OTHER, unless it did already."""
        table = self.library(warehouse).load_table((NAME.database, NAME.table))
        if len(table.snapshots()) == 1:
            table.append(rows_as_table([OTHER]))

    def new_table(self, warehouse: Path, rows: Sequence[Row] = OLD) -> None:
        """A table with the rows OLD, one file in each of two partitions, or with others."""
        from pyiceberg.exceptions import NoSuchTableError

        catalog, name = self.library(warehouse), (NAME.database, NAME.table)
        catalog.create_namespace_if_not_exists(NAME.database)
        with suppress(NoSuchTableError):
            catalog.drop_table(name)
        mode = "merge-on-read" if self.marks else "copy-on-write"
        modes = {f"write.{each}.mode": mode for each in ("merge", "delete")}
        properties = {"format-version": "2", **modes}
        table = catalog.create_table(name, _SCHEMA, properties=properties)
        if self.clears:
            table.append(rows_as_table(rows))
        with table.update_spec() as spec:
            spec.add_identity("p")
        if self.version == 3:
            if self.server:
                upgrade_on_server(catalog, name)
            else:
                upgrade(catalog.load_table(name))
            by_place = sorted(rows, key=lambda row: row["p"])
            append(self.catalog(warehouse), NAME, by_place, self.credentials)
        elif rows and not self.clears:
            table.append(rows_as_table(rows))

    def look(self, warehouse: Path) -> Seen:
        """The table now, as pyiceberg sees it."""
        table = self.library(warehouse).load_table((NAME.database, NAME.table))
        scan = table.scan()
        if self.version == 3:
            # No two rows have one id.
            ids_here(open_connector(self.catalog(warehouse), self.credentials), NAME)
        files = [each for task in scan.plan_files() for each in (task.file, *task.delete_files)]
        return Seen(
            rows=sorted(scan.to_arrow().to_pylist(), key=repr),
            ids=[each.snapshot_id for each in table.snapshots()],
            made_by=[_maker(each) for each in table.snapshots()],
            live=frozenset(each.file_path.removeprefix("file://") for each in files),
            on_disk=frozenset(
                str(path) for each in ("*.parquet", "*.puffin") for path in warehouse.rglob(each)
            ),
            guards=frozenset(path.name for path in warehouse.rglob("*.base")),
        )


@cache
def _glue_library(work: IcebergWork, warehouse: Path) -> Any:
    """The catalog; to make a client of Amazon's takes longer than what it is for."""
    from pyiceberg.catalog import load_catalog

    options = {**work.catalog(warehouse).options, "glue.endpoint": work.server}
    return load_catalog("glue", **options, **work.credentials)


def address_of(server: Server | None, folder: Path) -> tuple[dict[str, Any], Path]:
    """The fields of a work for a catalog, and the folder of its tables."""
    if server is None:
        require_package("sqlalchemy")
        return {}, folder / "lake"
    if isinstance(server, ObjectStore):
        address = {"server": server.endpoint, "token": server.secret_key, "glue": True}
        return address, folder / "lake"
    return {"server": server.uri, "token": server.secret}, server.folder


def server_of(request: pytest.FixtureRequest, catalog: str) -> Server | None:
    """The server of the catalog ``rest`` or ``glue``; ``sql`` has none."""
    fixture = {"rest": "iceberg_rest", "glue": "glue"}.get(catalog)
    return None if fixture is None else request.getfixturevalue(fixture)


def rows_as_table(rows: Sequence[Row]) -> pa.Table:
    """The rows as pyiceberg takes them."""
    return pa.Table.from_pylist(list(rows), schema=_SCHEMA)


def files_of(root: Path) -> set[str]:
    """The files of a table, but for metadata files, probes of the clock and half written notes."""
    files = {str(each) for each in root.rglob("*") if each.is_file()}
    ignored = (".metadata.json", ".clock", ".tmp", ".crc")
    return {each for each in files if not each.endswith(ignored)}


def needed_files(table: Any) -> set[str]:
    """What the snapshots of a table need, as pyiceberg reads their manifests."""
    found = set()
    for snapshot in table.snapshots():
        found.add(path_of(snapshot.manifest_list))
        for manifest in snapshot.manifests(table.io):
            found.add(path_of(manifest.manifest_path))
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            found.update(path_of(each.data_file.file_path) for each in entries)
    return found


def path_of(location: str) -> str:
    """The path of a location in the local file system."""
    return "/" + location.removeprefix("file:").lstrip("/")


def _maker(snapshot: Any) -> str:
    return str(snapshot.summary.get("merge.operation-id") or "others")


WORKS = {
    "merge": IcebergWork("operation-1", 100),
    "insert": IcebergWork("operation-1", 100, changes=False),
    "merge on read": IcebergWork("operation-1", 100, marks=True),
    "merge beside others": IcebergWork("operation-1", 100, meets_others=True),
    "merge on read beside others": IcebergWork("operation-1", 100, marks=True, meets_others=True),
    "merge of version 3": IcebergWork("operation-1", 100, version=3),
    "clear": IcebergWork("operation-1", 100, clears=True),
    "clear on read": IcebergWork("operation-1", 100, marks=True, clears=True),
    "merge on read of version 3": IcebergWork("operation-1", 100, marks=True, version=3),
}


@dataclass
class IcebergMatrix(Matrix):
    """Faults of merges on Iceberg tables; ``place`` is the folder of the catalog."""

    place: Path = Path()

    @classmethod
    def on(cls, drivers: Drivers, folder: Path, server: Server | None) -> IcebergMatrix:
        """On a catalog of SQLite in ``folder``, or on a server."""
        address, place = address_of(server, folder)
        works = {name: replace(work, **address) for name, work in WORKS.items()}
        return cls(drivers, folder, works=works, place=place)

    def _look(self, work: Work, warehouse: Path) -> Seen:
        assert isinstance(work, IcebergWork)
        return work.look(warehouse)

    @property
    def _warehouse(self) -> Path:
        return self.place

    def _fresh(self, work: str) -> Path:
        """A new table, always at one and the same path."""
        made = self.works[work]
        assert isinstance(made, IcebergWork)
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        made.new_table(self.place)
        return self.place
