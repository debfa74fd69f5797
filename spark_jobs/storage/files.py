"""Files and folders on any storage: replaced, made and removed. Used by executors too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spark_jobs.contract.unfinished_files import unfinished_name

if TYPE_CHECKING:
    import pyarrow.fs as pafs


def replace_file(filesystem: pafs.FileSystem, path: str, content: bytes | Iterable[bytes]) -> None:
    """Make or replace a file: readers see the whole content or none of it.

    Raises:
        OSError: the storage refused.
    """
    if not has_folders(filesystem):
        # The object appears when the stream is closed.
        _write(filesystem, path, content)
        return
    temporary = temporary_path(path)
    make_folder(filesystem, path.rpartition("/")[0])
    _write(filesystem, temporary, content)
    filesystem.move(temporary, path)


def temporary_path(path: str) -> str:
    """A hidden file beside ``path``, of a name that no other job uses."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{unfinished_name(name)}"


def _write(filesystem: pafs.FileSystem, path: str, content: bytes | Iterable[bytes]) -> None:
    with filesystem.open_output_stream(path) as stream:
        for piece in [content] if isinstance(content, bytes) else content:
            stream.write(piece)


def make_folder(filesystem: pafs.FileSystem, path: str) -> None:
    """Make a folder and those above it, where storage has such a thing."""
    if has_folders(filesystem):
        filesystem.create_dir(path, recursive=True)


def remove_folder(filesystem: pafs.FileSystem, path: str) -> None:
    """Remove a folder and all that is in it, if it is there.

    Raises:
        OSError: the storage refused.
    """
    try:
        filesystem.delete_dir(path)
    except FileNotFoundError:
        return
    except OSError:
        # A late task left one more file meanwhile. Or a store over a file system refuses to remove
        # a folder's name before its files: they are gone by now, and with the last one the folder.
        if filesystem.get_file_info(path).type.name != "NotFound":
            filesystem.delete_dir(path)


def has_folders(filesystem: pafs.FileSystem) -> bool:
    """False for object stores, where a folder is only the beginning of names."""
    return str(filesystem.type_name) != "s3"
