"""Copies of files within one storage. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow.fs as pafs

from spark_jobs.storage.files import make_folder, remove_file
from spark_jobs.storage.parallel import in_parallel

_CHUNK: Final = 8 * 1024 * 1024


def copy_files(filesystem: pafs.FileSystem, pairs: Sequence[tuple[str, str]]) -> None:
    """Copy files to new paths, several at a time; the storage does it itself where it can.

    Raises:
        FileNotFoundError: a file is not there; its path is ``filename``.
        OSError: the storage refused.
    """
    in_parallel(lambda pair: _copy(filesystem, *pair), pairs)


def _copy(filesystem: pafs.FileSystem, source: str, target: str) -> None:
    if filesystem.get_file_info(source).type != pafs.FileType.File:
        raise FileNotFoundError(2, "there is no such file", source)
    make_folder(filesystem, target.rpartition("/")[0])
    try:
        if filesystem.type_name == "s3":
            filesystem.copy_file(source, target)
        else:
            _streamed(filesystem, source, target)
    except BaseException:
        remove_file(filesystem, target)
        raise


def _streamed(filesystem: pafs.FileSystem, source: str, target: str) -> None:
    with (
        filesystem.open_input_stream(source) as read,
        filesystem.open_output_stream(target) as written,
    ):
        while chunk := read.read(_CHUNK):
            written.write(chunk)
