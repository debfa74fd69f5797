"""HDFS as a pyarrow file system, through a client that needs no Java. Imported by executors.

The client (hdfs-native) speaks the protocols of NameNode and DataNode. Paths begin with the
authority, as those of object stores begin with the bucket: ``namenode:8020/warehouse/a``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.contract.hdfs_options import PACKAGE, HdfsOptions
from spark_jobs.errors import CatalogError, ErrorCode


def hdfs_filesystem(options: HdfsOptions) -> pafs.FileSystem:
    """The file system; it is picklable with its options, for executors.

    Its methods raise OSError, and CatalogError (LIBRARY_MISSING) if the client is not installed.
    """
    return pafs.PyFileSystem(_Hdfs(options))


def hdfs_client(options: HdfsOptions) -> Any:
    """The client, one per process; its paths have no authority.

    Raises:
        CatalogError: LIBRARY_MISSING.
        OSError: the NameNode is unknown.
    """
    return _client(os.getpid(), options)


@contextmanager
def hdfs_failures(path: str) -> Iterator[None]:
    """Turn all failures of the client into OSErrors without Java stack traces."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no {path}") from None
    except FileExistsError:
        raise FileExistsError(f"{path} exists already") from None
    except PermissionError as error:
        raise PermissionError(f"HDFS, {path}: {error}") from error
    except OSError as error:
        raise ConnectionError(f"HDFS, {path}: {error}") from error
    except RuntimeError as error:
        problem = str(error).split("\\n")[0]
        if "AccessControlException" in problem or "AuthorizationException" in problem:
            raise PermissionError(f"HDFS, {path}: {problem}") from None
        # The NameNode refused, or a DataNode failed.
        kind = OSError if problem.startswith("RPCError") else ConnectionError
        raise kind(f"HDFS, {path}: {problem}") from None


@lru_cache(maxsize=8)
def _client(process_id: int, options: HdfsOptions) -> Any:
    # A forked process cannot use the threads of its parent's client.
    del process_id
    try:
        from hdfs_native import Client
    except ImportError as error:
        raise CatalogError(
            ErrorCode.LIBRARY_MISSING,
            "A warehouse on hdfs:// needs the package hdfs-native in the environments of the "
            "driver and of the executors.",
            f'Install it there: pip install "{PACKAGE}".',
        ) from error
    with hdfs_failures(options.authority):
        return Client(f"hdfs://{options.authority}", dict(options.config))


@dataclass(frozen=True)
class _Hdfs(pafs.FileSystemHandler):  # type: ignore[misc]
    options: HdfsOptions

    def get_type_name(self) -> str:
        return "hdfs"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        client, folder = self._client, self._inside(selector.base_dir)
        try:
            with hdfs_failures(selector.base_dir):
                found = list(client.list_status(folder, selector.recursive))
        except FileNotFoundError:
            if selector.allow_not_found:
                return []
            raise
        return [self._described(status) for status in found]

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        with hdfs_failures(path):
            return pa.PythonFile(_Input(self._client.read(self._inside(path)), path), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        del metadata
        client = self._client
        from hdfs_native import WriteOptions

        with hdfs_failures(path):
            writer = client.create(self._inside(path), WriteOptions(overwrite=True))
        return pa.PythonFile(_Output(writer, path), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        raise NotImplementedError

    def create_dir(self, path: str, recursive: bool) -> None:
        with hdfs_failures(path):
            self._client.mkdirs(self._inside(path), create_parent=recursive)

    def delete_dir(self, path: str) -> None:
        self._delete(path, recursive=True)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        folder = pafs.FileSelector(path, allow_not_found=missing_dir_ok)
        for info in self.get_file_info_selector(folder):
            self._delete(info.path, recursive=True)

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        self._delete(path, recursive=False)

    def move(self, src: str, dest: str) -> None:
        with hdfs_failures(src):
            self._client.rename(self._inside(src), self._inside(dest), overwrite=True)

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError

    @property
    def _client(self) -> Any:
        return hdfs_client(self.options)

    def _inside(self, path: str) -> str:
        return path_in_hdfs(self.options.authority, path)

    def _info(self, path: str) -> pafs.FileInfo:
        try:
            with hdfs_failures(path):
                return self._described(self._client.get_file_info(self._inside(path)))
        except FileNotFoundError:
            return pafs.FileInfo(path, pafs.FileType.NotFound)

    def _described(self, status: Any) -> pafs.FileInfo:
        return pafs.FileInfo(
            f"{self.options.authority}{status.path}".rstrip("/"),
            pafs.FileType.Directory if status.isdir else pafs.FileType.File,
            mtime=status.modification_time / 1000,
            size=None if status.isdir else status.length,
        )

    def _delete(self, path: str, *, recursive: bool) -> None:
        with hdfs_failures(path):
            is_gone = self._client.delete(self._inside(path), recursive)
        if not is_gone:
            raise FileNotFoundError(f"there is no {path}")


def path_in_hdfs(authority: str, path: str) -> str:
    """The client's path for ``path``, which begins with the authority.

    Raises:
        OSError: it begins with another authority.
    """
    found, _, inside = path.partition("/")
    if found != authority:
        raise OSError(f"{path} is not in hdfs://{authority}")
    return f"/{inside}"


class _Input:
    """A file with random access; the client's own reader panics beyond the end of the file."""

    def __init__(self, reader: Any, path: str) -> None:
        self._reader = reader
        self._path = path
        self._size = len(reader)
        self._position = 0
        self.closed = False

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._position, 0)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        with hdfs_failures(self._path):
            content = bytes(self._reader.read_range(self._position, length))
        self._position += len(content)
        return content

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


class _Output:
    """A file that is written sequentially."""

    def __init__(self, writer: Any, path: str) -> None:
        self._writer = writer
        self._path = path
        self._position = 0
        self.closed = False

    def write(self, content: bytes) -> int:
        with hdfs_failures(self._path):
            self._writer.write(content)
        self._position += len(content)
        return len(content)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Do nothing: the file has its content once it is closed."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        with hdfs_failures(self._path):
            self._writer.close()
