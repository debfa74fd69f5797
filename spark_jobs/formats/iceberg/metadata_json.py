"""The metadata files of tables of version 3, which pyiceberg reads, but does not write.

Whatever the file before has that pyiceberg does not know stays.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_PACKED: Final = (".gz.metadata.json", ".metadata.json.gz")
# Of version 1, which has the lists below beside them.
_FORMER: Final = ("schema", "partition-spec")
_SNAPSHOTS: Final = "snapshots"
_SNAPSHOT_ID: Final = "snapshot-id"
# Lists of what never changes, and by what its members are told apart.
_FIXED: Final[Mapping[str, str]] = {
    "schemas": "schema-id",
    "partition-specs": "spec-id",
    "sort-orders": "order-id",
    "statistics": "statistics-path",
    "partition-statistics": "statistics-path",
}


def version_3_json(metadata: Any, read: Callable[[str], bytes]) -> bytes:
    """The file of pyiceberg's ``metadata``; ``read`` gives the one before it, if there is one."""
    from pyiceberg.table.metadata import TableMetadataCommonFields

    document = json.loads(TableMetadataCommonFields.model_dump_json(metadata))
    document.setdefault("next-row-id", 0)
    log = document.get("metadata-log")
    if log:
        _keep(document, metadata, _before(read, log[-1]["metadata-file"]))
    return json.dumps(document).encode()


def _before(read: Callable[[str], bytes], location: str) -> dict[str, Any]:
    content = read(location)
    content = gzip.decompress(content) if location.endswith(_PACKED) else content
    found: dict[str, Any] = json.loads(content)
    return found


def _keep(document: dict[str, Any], metadata: Any, before: Mapping[str, Any]) -> None:
    """Keep in ``document`` what only the file ``before`` has."""
    known = _names(type(metadata)) | {*_FORMER}
    document.update({name: each for name, each in before.items() if name not in known})
    for name, key in _FIXED.items():
        old = {each.get(key): each for each in before.get(name) or ()}
        document[name] = [old.get(each.get(key), each) for each in document.get(name) or ()]
    if not metadata.snapshots:
        return
    names = _names(type(metadata.snapshots[0]))
    document[_SNAPSHOTS] = _snapshots(document[_SNAPSHOTS], before.get(_SNAPSHOTS) or (), names)


def _snapshots(
    now: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]], names: frozenset[str]
) -> list[dict[str, Any]]:
    """The snapshots with what those of their ids had besides ``names``."""
    old = {each[_SNAPSHOT_ID]: each for each in before}
    return [
        {**{k: v for k, v in old.get(each[_SNAPSHOT_ID], {}).items() if k not in names}, **each}
        for each in now
    ]


def _names(model: Any) -> frozenset[str]:
    """The names that pyiceberg's model knows, as JSON has them."""
    return frozenset(each.alias or name for name, each in model.model_fields.items())
