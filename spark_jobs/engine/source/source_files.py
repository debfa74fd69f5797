"""The files of a source, listed once, with their versions. Driver only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs

from spark_jobs.contract.source_names import placed_source
from spark_jobs.engine.runtime.java_names import java_class
from spark_jobs.engine.source.arrow_source import listed, spark_knows
from spark_jobs.engine.source.complete_listing import require_all_listed
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.landing.files import FileVersion, LandedFile, changed
from spark_jobs.landing.options import LISTING
from spark_jobs.spark_paths import is_data_file
from spark_jobs.spi.file_index import FileIndex
from spark_jobs.spi.storage import FileLocation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from spark_jobs.contract.request import FileSource
    from spark_jobs.spi.connector import Connector

_NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_ONE_LISTING: Final = 1_000
_REQUESTS_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files of a source, sorted by path.

    ``filesystem`` is where tasks read them; None if only Spark can. ``partition_types`` are the
    types of the columns whose values are in folder names. ``is_listed_by_spark``: Spark can also
    read them.
    """

    source: FileSource
    filesystem: pafs.FileSystem | None
    files: tuple[LandedFile, ...]
    partition_types: Mapping[str, DataType] = field(default_factory=dict)
    is_listed_by_spark: bool = True

    @property
    def byte_size(self) -> int:
        """Bytes of all files."""
        return sum(file.version.size for file in self.files)

    def require_unchanged(self) -> None:
        """Check that no file was rewritten or removed since they were listed.

        Raises:
            CatalogError: SOURCE_UNREADABLE.
        """
        if self.filesystem is None:
            return
        found = _looked_up(self.filesystem, [file.path for file in self.files])
        for file, info in zip(self.files, found, strict=True):
            if info.type != pafs.FileType.File or FileVersion.of(info) != file.version:
                raise changed(file.name)


def source_files(spark: SparkSession, source: FileSource, connector: Connector) -> SourceFiles:
    """List the files of ``source``: with Spark if it knows the store, else with the connector.

    Raises:
        CatalogError: SOURCE_NOT_FOUND, SOURCE_UNREADABLE.
        NotSupportedError: without Spark, partition folders cannot be listed.
    """
    if not spark_knows(spark, source.path):
        location = connector.locate(source.path)
        if location is None:
            raise CatalogError(
                ErrorCode.SOURCE_UNREADABLE,
                f"{placed_source(source)}: neither Spark nor the catalog connection knows this "
                "kind of storage.",
                "Put the Hadoop jar of the store on Spark's class path, or correct the path.",
            )
        return located_files(source, location)
    frame = _listing(spark, source)
    types = {each.name: each.dataType for each in frame.schema.fields[1:]}
    return files_of_frame(spark, source, frame, connector, types)


def _listing(spark: SparkSession, source: FileSource) -> DataFrame:
    """A frame that Spark makes from nothing but a listing."""
    options = {name: each for name, each in source.options.items() if name.lower() in LISTING}
    return spark.read.format("text").options(**options).load(source.path)


def located_files(source: FileSource, location: FileLocation) -> SourceFiles:
    """List the files of a source that the connector has located; raises as ``source_files``."""
    scheme = source.path.partition("://")[0]
    files = tuple(
        LandedFile(info.path, f"{scheme}://{info.path}", FileVersion.of(info))
        for info in listed(source, location)
    )
    return SourceFiles(source, location.filesystem, files, is_listed_by_spark=False)


def files_of_frame(
    spark: SparkSession,
    source: FileSource,
    frame: DataFrame,
    connector: Connector,
    partition_types: Mapping[str, DataType] | None = None,
) -> SourceFiles:
    """The files that Spark has listed for ``frame``.

    Raises:
        CatalogError: SOURCE_NOT_FOUND, there are none; SOURCE_UNREADABLE, Spark does not see a
            file, or has seen it when it was larger or smaller.
    """
    paths = sorted(_input_files(spark, frame))
    if not any(map(_is_data_file, paths)):
        raise CatalogError(
            ErrorCode.SOURCE_NOT_FOUND,
            f"{placed_source(source)} holds no files",
            "Check the path; for a source that may be empty, write a file without rows.",
        )
    types = partition_types or {}
    index = FileIndex.of(frame)
    if urlsplit(paths[0]).scheme in ("", "file"):
        filesystem: pafs.FileSystem | None = pafs.LocalFileSystem()
        require_all_listed(spark, source, index, lambda: FileIndex.of(_listing(spark, source)))
    else:
        location = connector.locate(paths[0])
        filesystem = location.filesystem if location else None
    files = _landed(filesystem, paths, types)
    if filesystem is not None:
        _require_sizes(source, index, files)
    read = tuple(file for uri, file in zip(paths, files, strict=True) if _is_data_file(uri))
    return SourceFiles(source, filesystem, read, types)


def _require_sizes(source: FileSource, index: FileIndex, files: Sequence[LandedFile]) -> None:
    there, listed_by_spark = sum(file.version.size or 0 for file in files), index.byte_size
    if there != listed_by_spark:
        raise CatalogError(
            ErrorCode.SOURCE_UNREADABLE,
            f"{placed_source(source)}: Spark has listed {listed_by_spark:,} bytes in {len(files)} "
            f"files, which have {there:,} bytes.",
            "Let their writer end before this statement begins.",
        )


def located_folder(spark: SparkSession, connector: Connector, folder: str) -> FileLocation | None:
    """Where Python reaches ``folder``, an absolute path or URI; None if it cannot."""
    uri = default_uri(spark, folder)
    path = uri.removeprefix("file://")
    local = FileLocation(pafs.LocalFileSystem(), path.rstrip("/")) if path.startswith("/") else None
    return connector.locate(uri) or local


def default_uri(spark: SparkSession, path: str) -> str:
    """``path`` as a URI of Spark's default file system, unless that is the local one."""
    if "://" in path:
        return path
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    file_systems = java_class(spark, "org.apache.hadoop.fs.FileSystem")
    default = str(file_systems.getDefaultUri(configuration))
    return path if default.startswith("file:") else f"{default.rstrip('/')}{path}"


def _input_files(spark: SparkSession, frame: DataFrame) -> list[str]:
    """``frame.inputFiles()`` in one call; Py4J would make one call per file."""
    mapper = java_class(spark, "com.fasterxml.jackson.databind.ObjectMapper")()
    files: list[str] = json.loads(mapper.writeValueAsString(frame._jdf.inputFiles()))
    return files


def _is_data_file(uri: str) -> bool:
    return is_data_file(uri.rpartition("/")[2])


def _landed(
    filesystem: pafs.FileSystem | None, uris: Sequence[str], types: Mapping[str, DataType]
) -> tuple[LandedFile, ...]:
    if filesystem is None:
        unknown = FileVersion(-1, None)
        return tuple(LandedFile(uri, uri, unknown, _partition(uri, types)) for uri in uris)
    names = [_path(uri) for uri in uris]
    infos = _looked_up(filesystem, names)
    is_local = isinstance(filesystem, pafs.LocalFileSystem)
    return tuple(
        LandedFile(name, name if is_local else uri, FileVersion.of(info), _partition(name, types))
        for name, uri, info in zip(names, uris, infos, strict=True)
    )


def _path(uri: str) -> str:
    """A path in pyarrow's file system; for stores other than local ones it starts with the host."""
    parts = urlsplit(uri)
    path = unquote(uri.partition("://")[2] if parts.netloc else parts.path)
    return path if parts.netloc else "/" + path.lstrip("/")


def _partition(path: str, types: Mapping[str, DataType]) -> dict[str, str | None]:
    """Values of partition columns in a path, as Spark and Hive write them.

    Raises:
        CatalogError: SOURCE_UNREADABLE, a value is not UTF-8.
    """
    if not types:
        return {}
    try:
        folders = (part.lstrip("=").partition("=") for part in path.split("/"))
        found = {
            unquote(name): unquote(value, errors="strict") for name, sign, value in folders if sign
        }
    except UnicodeDecodeError:
        raise CatalogError(
            ErrorCode.SOURCE_UNREADABLE,
            f"{path}: the name of a folder is not UTF-8",
            "Rename the folder.",
        ) from None
    return {
        name: None if found.get(name) in (None, _NULL_PARTITION) else found[name] for name in types
    }


def _looked_up(filesystem: pafs.FileSystem, paths: Sequence[str]) -> list[pafs.FileInfo]:
    chunks = [paths[i : i + _ONE_LISTING] for i in range(0, len(paths), _ONE_LISTING)]
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        found = pool.map(filesystem.get_file_info, map(list, chunks))
        return [info for infos in found for info in infos]
