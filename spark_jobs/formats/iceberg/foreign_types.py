"""Types that pyiceberg does not know, so that tables with a column of one are loaded all the same.

In what pyiceberg reads, other types stand in for them, which no table has in earnest: ``fixed`` of
lengths near 2 GiB. In what this project reads of pyiceberg's schemas, they have their own names.
"""

from __future__ import annotations

import gzip
import json
import re
from typing import Any, Final

_METADATA: Final = ".metadata.json"
_PACKED: Final = ".gz.metadata.json"
_LENGTH: Final = 2**31 - 1
_STAND_INS: Final = {
    name: f"fixed[{_LENGTH - number}]"
    for number, name in enumerate(("variant", "geometry", "geography"))
}
_NAMES: Final = {stand_in: name for name, stand_in in _STAND_INS.items()}
# The parameters of some types, such as a reference system, matter to nobody here.
_TYPE: Final = re.compile(rf"({'|'.join(_STAND_INS)})(\(.*\))?")


def type_name(name: str) -> str:
    """The name of a primitive type that pyiceberg calls ``name``."""
    return _NAMES.get(name, name)


def readable_file(location: str, content: bytes) -> bytes:
    """The content of a file; of one with a table's metadata, such that pyiceberg can read it."""
    if location.endswith(_PACKED):
        plain = gzip.decompress(content)
        known = readable(plain)
        return content if known is plain else gzip.compress(known, 1)
    return readable(content) if location.endswith(_METADATA) else content


def readable(content: bytes) -> bytes:
    """A JSON document with a table's metadata, such that pyiceberg can read it."""
    if not any(f'"{name}'.encode() in content for name in _STAND_INS):
        return content
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return content
    metadata = document.get("metadata", document) if isinstance(document, dict) else None
    if not isinstance(metadata, dict):
        return content
    for schema in metadata.get("schemas") or ():
        _replace(schema)
    return json.dumps(document).encode()


def _replace(place: Any) -> None:
    """Let others stand in for the types below a struct, list, map or field."""
    waiting = [place]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            for key in ("type", "element", "key", "value"):
                kind = node.get(key)
                if isinstance(kind, str) and (foreign := _TYPE.fullmatch(kind)):
                    node[key] = _STAND_INS[foreign[1]]
            waiting += [node.get(key) for key in ("type", "element", "key", "value", "fields")]
