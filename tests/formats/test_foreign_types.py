"""Types of Iceberg that pyiceberg does not know, in what it reads of a table."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from pyiceberg.schema import Schema

from spark_jobs.formats.iceberg.foreign_types import readable, readable_file, type_name

_VARIANT = {"id": 2, "name": "v", "type": "variant", "required": False, "doc": "a variant"}
_ID = {"id": 1, "name": "id", "type": "long", "required": True}


def document(*fields: dict[str, Any]) -> dict[str, Any]:
    """A table's metadata, as far as it matters."""
    schemas = [{"type": "struct", "schema-id": 0, "fields": list(fields)}]
    return {"schemas": schemas, "properties": {"type": "variant"}}


def nested(kind: Any) -> dict[str, Any]:
    """A column with a struct, a list and a map of the type."""
    field = {"id": 4, "name": "f", "type": kind, "required": False}
    values = {"type": "list", "element-id": 5, "element": kind, "element-required": False}
    pairs = {"key-id": 6, "key": "string", "value-id": 7, "value": values, "value-required": False}
    inner = {"id": 8, "name": "m", "type": {"type": "map", **pairs}, "required": False}
    struct = {"type": "struct", "fields": [field, inner]}
    return {"id": 3, "name": "n", "type": struct, "required": False}


@pytest.mark.parametrize(
    "kind",
    ["variant", "geometry", "geometry(OGC:CRS84)", "geography(OGC:CRS84, spherical)"],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_pyiceberg_reads_it_and_its_name_is_known(kind: str, wrapped: bool) -> None:
    plain = document(_ID, {**_VARIANT, "type": kind}, nested(kind))
    content = json.dumps({"metadata": plain, "config": {}} if wrapped else plain).encode()

    found = json.loads(readable(content))

    found = found["metadata"] if wrapped else found
    schema = Schema.model_validate(found["schemas"][0])
    assert type_name(str(schema.find_type("v"))) == kind.partition("(")[0]
    assert type_name(str(schema.find_type("n.m.value.element"))) == kind.partition("(")[0]
    assert found["properties"] == {"type": "variant"}
    assert found["schemas"][0]["fields"][1]["doc"] == "a variant"


def test_other_documents_stay_as_they_are() -> None:
    for content in (b"{}", b"no JSON", b'"variant', b'["variant"]', b'{"metadata": "variant"}'):
        assert readable(content) == content


def test_packed_files_are_read() -> None:
    content = json.dumps(document(_VARIANT)).encode()
    packed = readable_file("s3://b/t/metadata/1.gz.metadata.json", gzip.compress(content))
    assert gzip.decompress(packed) == readable(content) != content
    assert readable_file("s3://b/t/metadata/snap-1.avro", content) == content


def test_types_that_it_knows_have_their_own_names() -> None:
    assert type_name("fixed[16]") == "fixed[16]"
    assert type_name("long") == "long"
