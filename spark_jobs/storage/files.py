"""Creates, replaces and removes files and folders on any storage. Used by executors too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spark_jobs.contract.unfinished_files import unfinished_name

if TYPE_CHECKING:
    import pyarrow.fs as pafs


def replace_file(filesystem: pafs.FileSystem, path: str, content: bytes | Iterable[bytes]) -> None:
    """Create or replace a file atomically: readers see the whole content or none of it.

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
    """The path of a hidden file beside ``path``, with a name that no other job uses."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{unfinished_name(name)}"


def _write(filesystem: pafs.FileSystem, path: str, content: bytes | Iterable[bytes]) -> None:
    with filesystem.open_output_stream(path) as stream:
        for piece in [content] if isinstance(content, bytes) else content:
            stream.write(piece)


def make_folder(filesystem: pafs.FileSystem, path: str) -> None:
    """Create a folder and its parents, if the storage has folders."""
    if has_folders(filesystem):
        filesystem.create_dir(path, recursive=True)


def remove_folder(filesystem: pafs.FileSystem, path: str) -> None:
    """Remove a folder and everything in it, if it exists.

    Raises:
        OSError: the storage refused.
    """
    try:
        filesystem.delete_dir(path)
    except FileNotFoundError:
        return
    except OSError:
        # Either a late task has added a file meanwhile, or an object store on a file system refused
        # to remove the folder's name before its files. In the latter case the folder is gone now.
        if filesystem.get_file_info(path).type.name != "NotFound":
            filesystem.delete_dir(path)


def has_folders(filesystem: pafs.FileSystem) -> bool:
    """False for object stores, where a folder is only a prefix of names."""
    return str(filesystem.type_name) != "s3"
