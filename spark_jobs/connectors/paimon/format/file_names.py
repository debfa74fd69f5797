"""Names of files in a table's metadata. Never imports a table library."""

from __future__ import annotations

from typing import Any, Final

_LONGEST_NAME: Final = 255


def require_file_name(what: str, name: Any) -> None:
    """Check that ``name`` is the name of a single file, and leads to no other folder.

    Raises:
        ValueError: it is not.
    """
    if (
        type(name) is not str
        or name in ("", ".", "..")
        or len(name) > _LONGEST_NAME
        or any(character in name for character in "/\\\0")
    ):
        raise ValueError(f"{what}: {str(name)[:100]!r} is not the name of a file")
