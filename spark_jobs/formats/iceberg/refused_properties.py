"""Iceberg tables whose version or properties keep this project from changing their rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError

CODEC: Final = "write.parquet.compression-codec"
# The first is the default.
CODECS: Final = ("zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed")
MERGE_ON_READ: Final = "merge-on-read"
STATEMENTS: Final = ("merge", "update", "delete")
# What a table may say of each kind of statement; the first is the default.
CHOICES: Final = {
    "mode": ("copy-on-write", MERGE_ON_READ),
    "isolation-level": ("serializable", "snapshot"),
}
OTHER_ENGINE: Final = "Run this statement with Iceberg's own engines."

_WRITTEN: Final = 3
_SHOWN: Final = 100
# What properties may be, and properties that a table must not have.
_ALLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    CODEC: CODECS,
    # New files are parquet, whatever it is: readers go by the format of each file.
    "write.format.default": ("parquet", "orc", "avro"),
    **{f"write.{each}.{option}": CHOICES[option] for each in STATEMENTS for option in CHOICES},
}
# Numbers and folders that commits need; other ones would break each later one, or lose the table.
_WHOLE: Final = (
    "commit.manifest.min-count-to-merge",
    "commit.manifest.target-size-bytes",
    "write.metadata.previous-versions-max",
)
# Where a table's properties may send new files.
FOLDERS: Final = (
    *("write.data.path", "write.metadata.path"),
    *("write.object-storage.path", "write.folder-storage.path"),
)
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")
_ABSOLUTE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?/.*", re.DOTALL)
_NEVER: Final = ("encryption.key-id", "write.location-provider.impl")


def refuse_target(name: TableName, version: int, properties: Mapping[str, str]) -> None:
    """Refuse a table as a target, by its version of the format and its properties.

    Raises:
        NotSupportedError: names the version or the property.
    """
    if version > _WRITTEN:
        raise NotSupportedError(
            f"{name} has version {version} of the format, of which tables are only read.",
            OTHER_ENGINE,
        )
    refuse_properties(name, properties)


def refuse_properties(name: TableName, properties: Mapping[str, str]) -> None:
    """Refuse properties with one of which a table is no target; raises as ``refuse_property``."""
    for option in (*_ALLOWED, *_WHOLE, *FOLDERS, *_NEVER):
        if option in properties:
            refuse_property(name, option, properties[option])


def refuse_property(name: TableName, option: str, value: str) -> None:
    """Refuse a property with which a table is no target.

    Raises:
        NotSupportedError: names the property.
    """
    allowed = _ALLOWED.get(option)
    if allowed is not None and value.lower() not in allowed:
        raise NotSupportedError(
            f"{name}: property {option} = {value} is not supported.",
            f"Set it to {' or '.join(allowed)}, or run the statement with Iceberg's engines.",
        )
    if option in _WHOLE and not _NUMBER.fullmatch(value):
        raise NotSupportedError(
            f"{name}: property {option} = {value[:_SHOWN]!r} is not a whole number.",
            "Correct the property, or remove it.",
        )
    if option in FOLDERS and value and not _ABSOLUTE.fullmatch(value):
        raise NotSupportedError(
            f"{name}: property {option} = {value[:_SHOWN]!r} is not a whole path: where its files "
            "are would depend on who looks for them.",
            "Begin it with the storage, such as s3://bucket/folder, or remove the property.",
        )
    if option in _NEVER:
        raise NotSupportedError(f"{name}: property {option} is not supported.", OTHER_ENGINE)
