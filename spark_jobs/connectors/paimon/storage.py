"""Where a warehouse is: file system, paths, and how snapshots are published there. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.conditional_put import (
    ConditionalPutStore,
    require_conditional_put,
)
from spark_jobs.connectors.paimon.publish import HardLinkStore
from spark_jobs.connectors.paimon.removal import BulkRemover, SingleRemover
from spark_jobs.connectors.paimon.rename import RenameStore
from spark_jobs.connectors.paimon.s3 import catalog_options, s3_client, s3_filesystem
from spark_jobs.contract.hdfs_options import SCHEME as HDFS_SCHEME
from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.contract.s3_options import SCHEMES, S3Options
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, NotSupportedError
from spark_jobs.files.hdfs import hdfs_filesystem
from spark_jobs.spi.storage import has_folders

if TYPE_CHECKING:
    from spark_jobs.connectors.paimon.publish import SnapshotFiles
    from spark_jobs.connectors.paimon.removal import FileRemover

LOCK_OPTION: Final = "lock.enabled"
_ONE_MACHINE_ONLY: Final = ("hdfs.conf-dir", "security.")


@dataclass(frozen=True, slots=True)
class PaimonStorage:
    """A warehouse that is there and can be written.

    ``root`` is its path in ``filesystem``, ``location`` what pypaimon takes for it;
    ``catalog_options`` are what pypaimon needs to reach it, secrets among them. ``spark_prefix``
    makes a path of ``filesystem`` one for Spark's own readers; None: they can not reach it.
    """

    filesystem: pafs.FileSystem
    root: str
    location: str
    snapshots: SnapshotFiles
    remover: FileRemover
    spark_prefix: str | None
    catalog_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def spark_uri(self) -> str | None:
        """The warehouse for Spark's own readers; None: they can not reach it."""
        return None if self.spark_prefix is None else f"{self.spark_prefix}{self.root}"

    def require(self) -> None:
        """Refuse a warehouse whose folder is not there (any more): pypaimon would make it.

        Raises:
            CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
        """
        if not has_folders(self.filesystem):
            return
        try:
            found = self.filesystem.get_file_info(self.root).type
        except PermissionError as error:
            raise CatalogError(
                ErrorCode.WAREHOUSE_ACCESS_DENIED,
                f"The driver may not look at the warehouse {self.location}: {error}",
                "Give the user of the driver the right to read and write there.",
            ) from error
        except OSError as error:
            raise InternalError(
                ErrorCode.STORAGE_UNAVAILABLE,
                f"The warehouse {self.location} can not be reached: {error}",
                "Check the warehouse of the catalog connection, and the network from the driver.",
            ) from error
        if found != pafs.FileType.Directory:
            where = "on the driver's machine" if self.root.startswith("/") else "there"
            raise CatalogError(
                ErrorCode.WAREHOUSE_NOT_FOUND,
                f"The warehouse {self.location} does not exist {where}.",
                "Check the path; create the directory if it is a new warehouse.",
            )


def open_storage(
    warehouse: str, options: Mapping[str, str], *, publishes: bool = True
) -> PaimonStorage:
    """The storage of ``warehouse``; ``options`` are those of the catalog, secrets among them.

    ``publishes``: the storage decides whose snapshot is the next one; else a catalog's server does.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED, LIBRARY_MISSING.
        InternalError: STORAGE_UNAVAILABLE.
        NotSupportedError: snapshots can not be published safely there, with the reason.
    """
    scheme = "file" if warehouse.startswith("/") else urlsplit(warehouse).scheme.lower()
    if scheme == "file":
        return _local(warehouse)
    if scheme in SCHEMES:
        return _s3(warehouse, options, publishes)
    if scheme == HDFS_SCHEME:
        return _hdfs(warehouse, options)
    raise NotSupportedError(
        f"The warehouse {warehouse} is on storage of the kind {scheme}, where no way to publish a "
        "snapshot exactly once is built.",
        "Use a local path, hdfs://, or a bucket on s3:// whose store has conditional writes.",
    )


def _local(warehouse: str) -> PaimonStorage:
    root = _local_path(warehouse)
    filesystem = pafs.LocalFileSystem()
    remover = SingleRemover(filesystem)
    storage = PaimonStorage(filesystem, root, root, HardLinkStore(), remover, "file://")
    storage.require()
    return storage


def _local_path(warehouse: str) -> str:
    if warehouse.startswith("/"):
        path = warehouse
    else:
        parts = urlsplit(warehouse)
        if parts.netloc not in ("", "localhost"):
            raise NotSupportedError(
                f"The warehouse {warehouse} names a host.", "Use /path or file:///path."
            )
        path = unquote(parts.path)
    return path.rstrip("/") or "/"


def _s3(warehouse: str, options: Mapping[str, str], publishes: bool) -> PaimonStorage:
    if publishes and options.get(LOCK_OPTION, "false").lower() == "true":
        raise NotSupportedError(
            f"Catalog option {LOCK_OPTION} = true: Java writers rely on a lock that this job can "
            "not take, so one of them could replace a snapshot of this job on an object store.",
            "Let all writers of the catalog publish by conditional put, or use a REST catalog.",
        )
    root = warehouse.partition("://")[2].strip("/")
    access = S3Options.of(options)
    client = s3_client(access)
    if publishes:
        require_conditional_put(client, root)
    return PaimonStorage(
        s3_filesystem(access),
        root,
        f"s3://{root}",
        ConditionalPutStore(client),
        BulkRemover(client),
        spark_prefix=None,
        catalog_options=catalog_options(access),
    )


def _hdfs(warehouse: str, options: Mapping[str, str]) -> PaimonStorage:
    access = HdfsOptions.of(warehouse, options)
    _refuse_on_hdfs(warehouse, access, options)
    root = warehouse.partition("://")[2].rstrip("/")
    filesystem = hdfs_filesystem(access)
    storage = PaimonStorage(
        filesystem,
        root,
        f"hdfs://{root}",
        RenameStore(access),
        SingleRemover(filesystem),
        spark_prefix="hdfs://",
        # Without it pypaimon would try Hadoop's native library where the client is missing.
        catalog_options={**dict(access.config), "hdfs.client.impl": "native"},
    )
    storage.require()
    return storage


def _refuse_on_hdfs(warehouse: str, access: HdfsOptions, options: Mapping[str, str]) -> None:
    if not access.authority:
        raise NotSupportedError(
            f"The warehouse {warehouse} names no NameNode.",
            "Write hdfs://host:port/path, or hdfs://nameservice/path.",
        )
    name = next((name for name in options if name.startswith(_ONE_MACHINE_ONLY)), None)
    if name is not None:
        raise NotSupportedError(
            f"Catalog option {name} would work on the driver only, not on executors.",
            "Leave it out, and give each machine HADOOP_CONF_DIR, and a Kerberos ticket if needed.",
        )
