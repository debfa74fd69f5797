"""Reads the notes that tries of an operation leave for later ones: small JSON documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.storage.files import read_file

if TYPE_CHECKING:
    import pyarrow.fs as pafs

# In bytes.
_LONGEST: Final = 65_536
_T = TypeVar("_T")


def read_note(
    filesystem: pafs.FileSystem,
    path: str,
    parse: Callable[[Any], _T],
    remedy: str,
) -> _T | None:
    """What ``parse`` makes of the note at ``path``; None if there is none.

    Raises:
        CatalogError: METADATA_UNREADABLE, with ``remedy``: the file is no note.
        OSError: the storage refused.
    """
    try:
        return parse(json.loads(read_file(filesystem, path, _LONGEST)))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CatalogError(
            ErrorCode.METADATA_UNREADABLE, f"The note {path} is not readable: {error}", remedy
        ) from error
