"""A file system that reads from another one and discards what is written.

The sinks of a dry run write to it: they do all the work of a real run, so that their counts, sizes
and errors are the same. Imported by executors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs


def discarding(filesystem: pafs.FileSystem) -> pafs.FileSystem:
    """``filesystem`` for reading; writes are only counted. Picklable if ``filesystem`` is."""
    return pafs.PyFileSystem(_Discarding(filesystem))


@dataclass(frozen=True)
class _Discarding(pafs.FileSystemHandler):  # type: ignore[misc]
    filesystem: pafs.FileSystem

    def get_type_name(self) -> str:
        return f"discarding-{self.filesystem.type_name}"

    def normalize_path(self, path: str) -> str:
        return str(self.filesystem.normalize_path(path))

    def get_file_info(self, paths: list[str]) -> Any:
        return self.filesystem.get_file_info(paths)

    def get_file_info_selector(self, selector: pafs.FileSelector) -> Any:
        return self.filesystem.get_file_info(selector)

    def open_input_stream(self, path: str) -> Any:
        return self.filesystem.open_input_stream(path)

    def open_input_file(self, path: str) -> Any:
        return self.filesystem.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        del path, metadata
        return pa.MockOutputStream()

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        del path, metadata
        return pa.MockOutputStream()

    def create_dir(self, path: str, recursive: bool) -> None:
        del path, recursive

    def delete_dir(self, path: str) -> None:
        raise FileNotFoundError(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        if not missing_dir_ok:
            raise FileNotFoundError(path)

    def delete_root_dir_contents(self) -> None:
        raise FileNotFoundError

    def delete_file(self, path: str) -> None:
        raise FileNotFoundError(path)

    def move(self, src: str, dest: str) -> None:
        del dest
        raise FileNotFoundError(src)

    def copy_file(self, src: str, dest: str) -> None:
        del src, dest
