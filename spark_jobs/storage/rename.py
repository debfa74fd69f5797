"""Exclusive files in HDFS: a rename that fails if the name is taken. Driver only.

The NameNode decides (ClientProtocol.rename2 without the option OVERWRITE). Java writers may write
the same table if they publish by a rename that replaces no file.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.storage.files import temporary_path
from spark_jobs.storage.hdfs import hdfs_client, hdfs_failures, path_in_hdfs

_T = TypeVar("_T")
_RECONNECT_SECONDS: Final = 0.2


class RenameFiles:
    """Implements ``ExclusiveFiles`` for HDFS; paths begin with the authority."""

    def __init__(self, options: HdfsOptions) -> None:
        self._options = options

    def create(self, path: str, text: str) -> bool:
        """Write the text beside ``path``, then rename it; False if another file has the name."""
        target, body = path_in_hdfs(self._options.authority, path), text.encode()
        try:
            temporary = self._written(path, body)
        except OSError as error:
            # Whatever failed, no file of this writer has the snapshot's name yet.
            raise OSError(f"{path} could not be written: {error}") from error
        try:
            with hdfs_failures(path):
                self._client.rename(temporary, target)
        except OSError as error:
            return self._settled(temporary, target, body, error)
        return True

    def write_hint(self, path: str, text: str) -> None:
        """Replace the file."""
        target = path_in_hdfs(self._options.authority, path)
        with contextlib.suppress(OSError):
            temporary = self._written(path, text.encode())
            try:
                with hdfs_failures(path):
                    self._client.rename(temporary, target, overwrite=True)
            except OSError:
                self._discard(temporary)

    def _settled(self, temporary: str, target: str, body: bytes, failure: OSError) -> bool:
        """The final outcome of a rename that failed; True if it took effect.

        If no answer comes, the client sends a request twice, and the second one may fail because of
        the first. Once the temporary file is gone, a request still in flight has no effect.
        """
        try:
            withdrawn = _reconnecting(lambda: self._withdrawn(temporary, target))
        except OSError as error:
            raise TimeoutError(f"what became of {target} is not known: {error}") from failure
        if withdrawn == body:
            return True
        if withdrawn is not None and body.startswith(withdrawn):
            # The NameNode does not know its full length yet, so it may be ours.
            raise TimeoutError(f"{target} cannot be read to its end yet") from failure
        if withdrawn is None and not isinstance(failure, FileExistsError):
            raise OSError(f"{target} could not be published: {failure}") from failure
        return False

    def _withdrawn(self, temporary: str, target: str) -> bytes | None:
        """Remove the temporary file; returns the content of ``target``, None if there is none."""
        with hdfs_failures(target):
            self._client.delete(temporary)
        return self._content(target)

    def _written(self, path: str, body: bytes) -> str:
        """Write a new temporary file beside ``path``; returns its path."""
        target = path_in_hdfs(self._options.authority, path)
        return _reconnecting(lambda: self._write(temporary_path(target), body))

    def _write(self, path: str, body: bytes) -> str:
        try:
            with hdfs_failures(path):
                writer = self._client.create(path)
                writer.write(body)
                writer.close()
        except OSError:
            self._discard(path)
            raise
        return path

    def _content(self, path: str) -> bytes | None:
        try:
            with hdfs_failures(path):
                return bytes(self._client.read(path).read())
        except FileNotFoundError:
            return None

    def _discard(self, path: str) -> None:
        with contextlib.suppress(OSError), hdfs_failures(path):
            self._client.delete(path)

    @property
    def _client(self) -> Any:
        return hdfs_client(self._options)


def _reconnecting(act: Callable[[], _T]) -> _T:
    """``act()``, tried once more if it hits a connection that was already lost."""
    try:
        return act()
    except ConnectionError:
        # The client keeps using the lost connection for some milliseconds.
        time.sleep(_RECONNECT_SECONDS)
        return act()
