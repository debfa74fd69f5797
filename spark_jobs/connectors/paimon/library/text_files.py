"""Small files of metadata that somebody may remove while they are read."""

from __future__ import annotations

from typing import Any


def text_of(file_io: Any, path: str) -> str | None:
    """The text of a file, by pypaimon's ``file_io``; None if there is no such file.

    Of one that goes between a request for its size and one for its content, pyarrow says that an
    object store failed, in one of several ways: so the file is looked for once more.

    Raises:
        OSError: it cannot be read.
    """
    try:
        return str(file_io.read_file_utf8(path))
    except FileNotFoundError:
        return None
    except OSError:
        if file_io.exists(path):
            raise
        return None
