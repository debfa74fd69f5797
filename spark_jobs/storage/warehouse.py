"""A warehouse's storage, and how exactly one writer creates a file there. Driver only.

The workspace, where a catalog's jobs leave results and temporary files, is opened alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs

from spark_jobs.contract.access_rights import denied
from spark_jobs.contract.hdfs_options import SCHEME as HDFS_SCHEME
from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.contract.locations import WAREHOUSE_SCHEMES, Place, scheme_of
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.contract.s3_options import SCHEMES, S3Options
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, NotSupportedError
from spark_jobs.spi.storage import WarehouseStorage
from spark_jobs.storage.conditional_put import ConditionalPutFiles, require_conditional_put
from spark_jobs.storage.files import has_folders
from spark_jobs.storage.hard_link import HardLinkFiles
from spark_jobs.storage.hdfs import hdfs_filesystem
from spark_jobs.storage.removal import BulkRemover, SingleRemover
from spark_jobs.storage.rename import RenameFiles
from spark_jobs.storage.s3 import s3_client, s3_filesystem

if TYPE_CHECKING:
    from spark_jobs.storage.exclusive_files import ExclusiveFiles
    from spark_jobs.storage.removal import FileRemover


_ONE_MACHINE_ONLY: Final = ("hdfs.conf-dir", "security.")


@dataclass(frozen=True, slots=True)
class Warehouse:
    """An open warehouse.

    ``root`` is its path in ``filesystem``, ``location`` its location for table libraries.
    ``access`` holds the options it was opened with, secrets included; None for local folders.
    ``spark_prefix`` turns a path of ``filesystem`` into one for Spark's own readers; None if they
    cannot reach it. ``called`` is the field of the catalog connection that names the warehouse.
    """

    filesystem: pafs.FileSystem
    root: str
    location: str
    files: ExclusiveFiles
    remover: FileRemover
    spark_prefix: str | None
    access: S3Options | HdfsOptions | None = field(default=None, repr=False)
    called: Place = "warehouse"

    @property
    def spark_uri(self) -> str | None:
        """The URI of the warehouse for Spark's own readers; None if they cannot reach it."""
        return None if self.spark_prefix is None else f"{self.spark_prefix}{self.root}"

    def require(self) -> None:
        """Refuse a warehouse whose folder does not exist; a table library might create it.

        Raises:
            CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
        """
        if not has_folders(self.filesystem):
            return
        try:
            found = self.filesystem.get_file_info(self.root).type
        except PermissionError as error:
            raise denied(f"look at {self.location}: {error}", self.called) from error
        except OSError as error:
            raise InternalError(
                ErrorCode.STORAGE_UNAVAILABLE,
                f"The {self.called} {self.location} cannot be reached: {error}",
                f"Check the {self.called} of the catalog connection, and the driver's network.",
            ) from error
        if found != pafs.FileType.Directory:
            where = "on the driver's machine" if self.root.startswith("/") else "there"
            raise CatalogError(
                ErrorCode.WAREHOUSE_NOT_FOUND,
                f"The {self.called} {self.location} does not exist {where}.",
                f"Check the path; create the directory if it is a new {self.called}.",
            )


def open_warehouse(
    warehouse: str,
    options: Mapping[str, str],
    *,
    is_exclusive: bool = True,
    called: Place = "warehouse",
) -> Warehouse:
    """The storage of ``warehouse``; ``options`` are those of the catalog, secrets included.

    ``is_exclusive``: jobs create exclusive files there, so the store must support them; False if a
    catalog's server decides who commits, or if nothing is published there. ``called`` is the field
    of the catalog connection, for errors.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED, LIBRARY_MISSING.
        InternalError: STORAGE_UNAVAILABLE.
        NotSupportedError: snapshots cannot be published safely there; the message says why.
    """
    scheme = "file" if warehouse.startswith("/") else urlsplit(warehouse).scheme.lower()
    if scheme == "file":
        return _local(warehouse, called)
    if scheme in SCHEMES:
        return _s3(warehouse, options, called, is_exclusive=is_exclusive)
    if scheme == HDFS_SCHEME:
        return _hdfs(warehouse, options, called)
    raise NotSupportedError(
        f"The warehouse {warehouse} is on storage of the kind {scheme}, where no way to publish a "
        "snapshot exactly once is built.",
        "Use a local path, hdfs://, or a bucket on s3:// whose store has conditional writes.",
    )


def _local(warehouse: str, called: Place) -> Warehouse:
    root = _local_path(warehouse, called)
    filesystem = pafs.LocalFileSystem()
    remover = SingleRemover(filesystem)
    files = HardLinkFiles()
    storage = Warehouse(filesystem, root, root, files, remover, "file://", called=called)
    storage.require()
    return storage


def _local_path(warehouse: str, called: Place) -> str:
    if warehouse.startswith("/"):
        path = warehouse
    else:
        parts = urlsplit(warehouse)
        if parts.netloc not in ("", "localhost"):
            raise NotSupportedError(
                f"The {called} {warehouse} names a host.", "Use /path or file:///path."
            )
        path = unquote(parts.path)
    return path.rstrip("/") or "/"


def _s3(
    warehouse: str, options: Mapping[str, str], called: Place, *, is_exclusive: bool
) -> Warehouse:
    root = warehouse.partition("://")[2].strip("/")
    access = S3Options.of(options)
    client = s3_client(access)
    if is_exclusive:
        require_conditional_put(client, root)
    return Warehouse(
        s3_filesystem(access),
        root,
        f"s3://{root}",
        ConditionalPutFiles(client),
        BulkRemover(client),
        spark_prefix=None,
        access=access,
        called=called,
    )


def _hdfs(warehouse: str, options: Mapping[str, str], called: Place) -> Warehouse:
    access = HdfsOptions.of(warehouse, options)
    _refuse_on_hdfs(warehouse, access, options, called)
    root = warehouse.partition("://")[2].rstrip("/")
    filesystem = hdfs_filesystem(access)
    storage = Warehouse(
        filesystem,
        root,
        f"hdfs://{root}",
        RenameFiles(access),
        SingleRemover(filesystem),
        spark_prefix="hdfs://",
        access=access,
        called=called,
    )
    storage.require()
    return storage


def _refuse_on_hdfs(
    warehouse: str, access: HdfsOptions, options: Mapping[str, str], called: Place
) -> None:
    if not access.authority:
        raise NotSupportedError(
            f"The {called} {warehouse} names no NameNode.",
            "Write hdfs://host:port/path, or hdfs://nameservice/path.",
        )
    name = next((name for name in options if name.startswith(_ONE_MACHINE_ONLY)), None)
    if name is not None:
        raise NotSupportedError(
            f"Catalog option {name} would work on the driver only, not on executors.",
            "Leave it out, and give each machine HADOOP_CONF_DIR, and a Kerberos ticket if needed.",
        )


def open_workspace(
    catalog: CatalogSpec, options: Mapping[str, str], warehouse: Warehouse | None = None
) -> WarehouseStorage:
    """The catalog's workspace, by default its ``warehouse``, which may be open.

    ``options`` are those of the catalog, secrets included.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED, LIBRARY_MISSING.
        InternalError: STORAGE_UNAVAILABLE.
        NotSupportedError: the workspace is on storage that jobs cannot reach.
    """
    # No snapshot is published there, so nothing has to be exclusive.
    if catalog.workspace is not None:
        _refuse_other_storage(catalog.workspace)
        place = open_warehouse(catalog.workspace, options, is_exclusive=False, called="workspace")
    else:
        place = warehouse or open_warehouse(catalog.warehouse, options, is_exclusive=False)
    return WarehouseStorage(place.filesystem, place.root, place.spark_uri)


def _refuse_other_storage(workspace: str) -> None:
    scheme = scheme_of(workspace)
    if scheme not in WAREHOUSE_SCHEMES:
        raise NotSupportedError(
            f"The workspace {workspace} is on storage of the kind {scheme}, which jobs cannot "
            "reach.",
            "Use a local path, hdfs:// or s3://.",
        )
