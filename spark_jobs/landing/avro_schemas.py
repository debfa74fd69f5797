"""Schemas of Avro files; named types are resolved one at a time. Imported by executors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from spark_jobs.avro.container import AvroDamagedError
from spark_jobs.contract.identifiers import quote
from spark_jobs.errors import NotSupportedError

_TYPES: Final = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "enum": "STRING",
    "bytes": "BINARY",
    "fixed": "BINARY",
    "date": "DATE",
    "timestamp-millis": "TIMESTAMP",
    "timestamp-micros": "TIMESTAMP",
    "timestamp-nanos": "TIMESTAMP",
    "local-timestamp-millis": "TIMESTAMP_NTZ",
    "local-timestamp-micros": "TIMESTAMP_NTZ",
    "local-timestamp-nanos": "TIMESTAMP_NTZ",
}
# The type that each logical type annotates. Any other annotation is ignored, as Avro specifies.
_LOGICAL: Final = {
    **{name: "long" for name in _TYPES if "timestamp" in name},
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "duration": "fixed",
}
_RECORDS: Final = ("record", "error")
_NAMED: Final = (*_RECORDS, "enum", "fixed")
_PRIMITIVE: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_DECODING: Final = ("type", "name", "namespace", "symbols", "size", "items", "values")
_MOST_DIGITS: Final = 38
_MOST_DEPTH: Final = 64
_REMEDY: Final = (
    "Leave the column out of the source's schema, or write the files with types that Spark has."
)


class Part(NamedTuple):
    """A type as written in the schema's JSON, and its enclosing namespace."""

    raw: Any
    namespace: str


class AvroType(NamedTuple):
    """A type. ``name`` is that of its logical type if it has one (``decimal``, ``date``).

    ``fields`` belong to a record, ``item`` to an array or a map.
    """

    name: str
    nullable: bool = False
    precision: int = 0
    scale: int = 0
    fields: Mapping[str, Part] = {}
    item: Part | None = None


class AvroSchema:
    """The schema of a file whose records have ``fields``."""

    def __init__(self, raw: Any) -> None:
        """Collect the named types.

        Raises:
            AvroDamagedError: ``raw`` is not a schema.
            NotSupportedError: the file's values are not records.
        """
        self._names: dict[str, Part] = {}
        try:
            self._collect(Part(raw, ""))
            root = self.type_of(Part(raw, ""))
        except (KeyError, TypeError, AttributeError, RecursionError):
            raise AvroDamagedError("its schema is none") from None
        if root.name != "record" or root.nullable:
            raise NotSupportedError(
                f"Avro files with values of the type {root.name} cannot be read.",
                "Write them with records.",
            )
        self.fields = root.fields

    def type_of(self, part: Part) -> AvroType:
        """The type that ``part`` describes.

        Raises:
            AvroDamagedError: the schema does not define a type that it names.
            NotSupportedError: a union of several types.
        """
        raw, namespace = part
        if isinstance(raw, list):
            return self._union(part)
        if isinstance(raw, str):
            if raw in _PRIMITIVE:
                return AvroType(raw)
            known = self._names.get(f"{namespace}.{raw}") or self._names.get(raw)
            if known is None:
                raise AvroDamagedError(f"its schema has no type {raw}")
            return self.type_of(known)
        kind = raw["type"]
        if not isinstance(kind, str) or kind not in (*_PRIMITIVE, *_NAMED, "array", "map"):
            return self.type_of(Part(kind, namespace))
        if kind in _RECORDS:
            own = _full_name(part).rpartition(".")[0]
            fields = {each["name"]: Part(each["type"], own) for each in raw["fields"]}
            return AvroType("record", fields=fields)
        if kind in ("array", "map"):
            return AvroType(
                kind, item=Part(raw["items" if kind == "array" else "values"], namespace)
            )
        return _leaf(kind, raw)

    def _union(self, part: Part) -> AvroType:
        types = [self.type_of(Part(each, part.namespace)) for each in part.raw]
        some = [each for each in types if each.name != "null"]
        names = {each.name for each in some}
        if len(some) == 1:
            merged = some[0]
        elif names in ({"int", "long"}, {"float", "double"}):
            merged = AvroType("long" if "long" in names else "double")
        elif not some:
            merged = AvroType("null")
        else:
            raise NotSupportedError(f"a union of {', '.join(sorted(names))}", _REMEDY)
        return merged._replace(nullable=len(some) < len(types))

    def _collect(self, part: Part) -> None:
        raw, namespace = part
        if isinstance(raw, list):
            for each in raw:
                self._collect(Part(each, namespace))
        if not isinstance(raw, dict):
            return
        if raw["type"] in _NAMED:
            name = _full_name(part)
            namespace = name.rpartition(".")[0]
            self._names[name] = part
            for field in raw["fields"] if raw["type"] in _RECORDS else ():
                _require_text(field["name"])
                self._collect(Part(field["type"], namespace))
        elif raw["type"] in ("array", "map"):
            self._collect(Part(raw["items" if raw["type"] == "array" else "values"], namespace))
        else:
            self._collect(Part(raw["type"], namespace))


def _require_text(name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError


def _full_name(part: Part) -> str:
    name: str = part.raw["name"]
    if "." in name:
        return name
    namespace = part.raw.get("namespace", part.namespace)
    return f"{namespace}.{name}" if namespace else name


def _leaf(kind: str, raw: Mapping[str, Any]) -> AvroType:
    logical = raw.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = raw.get("precision", 0), raw.get("scale", 0)
        if isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision > 0:
            return AvroType("decimal", precision=precision, scale=scale)
    if isinstance(logical, str) and _LOGICAL.get(logical) == kind:
        return AvroType(logical)
    return AvroType(kind)


def ddl_of(schema: AvroSchema, part: Part, depth: int = 0) -> str:
    """A type in Spark's DDL.

    Raises:
        NotSupportedError: Spark has no such type; the message names it.
    """
    if depth > _MOST_DEPTH:
        raise NotSupportedError("a record that contains itself", _REMEDY)
    found = schema.type_of(part)
    if found.item is not None:
        item = ddl_of(schema, found.item, depth + 1)
        return f"ARRAY<{item}>" if found.name == "array" else f"MAP<STRING, {item}>"
    if found.name == "record":
        fields = (
            f"{quote(name)}: {ddl_of(schema, each, depth + 1)}"
            for name, each in found.fields.items()
        )
        return f"STRUCT<{', '.join(fields)}>"
    if found.name == "decimal" and found.precision <= _MOST_DIGITS:
        return f"DECIMAL({found.precision},{found.scale})"
    if found.name not in _TYPES:
        raise NotSupportedError(found.name, _REMEDY)
    return _TYPES[found.name]


def decoding_schema(raw: Any) -> Any:
    """The schema reduced to what decoding needs: no logical types, defaults or documentation."""
    if isinstance(raw, list):
        return [decoding_schema(each) for each in raw]
    if not isinstance(raw, dict):
        return raw
    kept = {key: raw[key] for key in _DECODING if key in raw}
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = decoding_schema(kept[key])
    if "fields" in raw:
        kept["fields"] = [
            {"name": each["name"], "type": decoding_schema(each["type"])} for each in raw["fields"]
        ]
    return kept
