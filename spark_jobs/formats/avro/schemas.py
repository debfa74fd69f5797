"""Schemas of Avro files; named types are resolved one at a time. Imported by executors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.avro.container import AvroDamagedError

# The type that each logical type annotates. Any other annotation is ignored, as Avro specifies.
_LOGICAL: Final = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "duration": "fixed",
}
_RECORDS: Final = ("record", "error")
_NAMED: Final = (*_RECORDS, "enum", "fixed")
_PRIMITIVE: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
OTHER_TYPES: Final = "Leave the column out, or write the files with types that Spark has."


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
            raise AvroDamagedError("its schema is not valid") from None
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
            raise NotSupportedError(f"a union of {', '.join(sorted(names))}", OTHER_TYPES)
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
