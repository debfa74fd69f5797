"""A table with another definition: pyiceberg's updates, and what tells that a table has them.

Driver only.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spark_jobs.connectors.iceberg.alter.definition import Definition, Document, mark
from spark_jobs.connectors.iceberg.library.definitions import upgrade_to
from spark_jobs.connectors.iceberg.table.pinned_table import NAME_MAPPING, PinnedTable
from spark_jobs.contract.request import TableName

# The parts of a definition of which a table keeps all that it had.
_KEPT = ("schema", "spec", "order")


@dataclass(frozen=True)
class NewDefinition:
    """The table ``name`` with the definition ``after`` in place of ``before``: a ``Change``.

    All parts are changed by one commit: whoever finds one of them knows that it was made.
    """

    name: TableName
    before: Definition
    after: Definition

    def __str__(self) -> str:
        return f"the definition of {self.name}"

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to change."""
        before, after = self.before, self.after
        same = all(_document_of(before, part) == _document_of(after, part) for part in _KEPT)
        return same and not self._properties() and before.version == after.version

    def updates(self, read: PinnedTable) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The definition must be what was read: also the parts that do not change."""
        return _required(read.metadata), tuple(self._updates(read.metadata))

    def is_in(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether the table has it since it was read."""
        return is_made(now, self.noted(read))

    def fits(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether nobody else has changed the definition."""
        same = str(read.metadata.table_uuid) == str(now.metadata.table_uuid)
        return same and _identity(read.metadata) == _identity(now.metadata)

    def noted(self, read: PinnedTable) -> dict[str, Any]:
        """What tells a later try whether the table that was ``read`` got it; JSON."""
        metadata = read.metadata
        known = _marks(metadata)
        parts = {}
        for part in _KEPT:
            wanted = mark(_document_of(self.after, part))
            if wanted != mark(_document_of(self.before, part)):
                parts[part] = {"mark": wanted, "known": wanted in known[part]}
        return {
            "table": str(metadata.table_uuid),
            "parts": parts,
            "version": self.after.version,
            "properties": {name: mark(value) for name, value in self._given().items()},
        }

    def _properties(self) -> dict[str, str | None]:
        """The properties that change, by name; None: it goes."""
        before, after = self.before.properties, self.after.properties
        names = sorted(before.keys() | after.keys())
        return {each: after.get(each) for each in names if before.get(each) != after.get(each)}

    def _given(self) -> dict[str, str | None]:
        """Those without the name mapping, if it follows the schema: it changes with later ones."""
        properties = self._properties()
        if self.after.mapping_follows:
            properties.pop(NAME_MAPPING, None)
        return properties

    def _updates(self, metadata: Any) -> Iterator[Any]:
        from pyiceberg.table import update

        before, after = self.before, self.after
        if before.version != after.version:
            yield upgrade_to(after.version)
        if before.schema != after.schema:
            yield from _schema_updates(metadata, after)
        if before.spec != after.spec:
            yield from _spec_updates(metadata, after)
        if before.order != after.order:
            yield from _order_updates(metadata, after)
        properties = self._properties()
        given = {name: value for name, value in properties.items() if value is not None}
        if given:
            yield update.SetPropertiesUpdate(updates=given)
        gone = [name for name, value in properties.items() if value is None]
        if gone:
            yield update.RemovePropertiesUpdate(removals=gone)


def is_made(now: PinnedTable, noted: Mapping[str, Any]) -> bool:
    """Whether a table has got what was ``noted``, whatever columns others changed after that.

    An equal change that somebody else made in between counts, too.
    """
    metadata, current = now.metadata, Definition.of(now.metadata)
    if str(metadata.table_uuid) != noted["table"] or current.version < noted["version"]:
        return False
    # Of former values of properties, a table knows nothing.
    if any(mark(current.properties.get(n)) != each for n, each in noted["properties"].items()):
        return False
    parts, known = noted["parts"], _marks(metadata)
    fresh = [part for part, each in parts.items() if not each["known"]]
    if fresh:
        return all(parts[part]["mark"] in known[part] for part in fresh)
    return all(mark(_document_of(current, p)) == each["mark"] for p, each in parts.items())


def with_name_mapping(before: Definition, after: Definition) -> None:
    """Give new names, and new columns, a place in the name mapping of ``after``, if it has one.

    So Java does it: files without ids are read by it.
    """
    text = after.properties.get(NAME_MAPPING)
    if text is None or text != before.properties.get(NAME_MAPPING):
        return
    from pyiceberg.table.name_mapping import parse_mapping_from_json, update_mapping

    old, new = before.paths(), after.paths()
    renamed = {
        i: _field(f) for i, (f, _) in new.items() if i in old and old[i][0]["name"] != f["name"]
    }
    added: dict[int, list[Any]] = {}
    for parent, fields in _children(after.fields):
        if parent == -1 or parent in _ids_of(before.fields):
            fresh = [_field(each) for each in fields if each["id"] not in old]
            if fresh:
                added[parent] = fresh
    if renamed or added:
        mapping = update_mapping(parse_mapping_from_json(text), renamed, added)
        after.properties[NAME_MAPPING] = mapping.model_dump_json()
        after.mapping_follows = True


def _field(document: Document) -> Any:
    from pyiceberg.types import NestedField

    return NestedField.model_validate(document)


def _children(fields: list[Document], parent: int = -1) -> Iterator[tuple[int, list[Document]]]:
    """The fields of each struct, with the id of what is the struct; -1: the table."""
    yield parent, fields
    for each in fields:
        yield from _children_of(each["type"], each["id"])


def _children_of(kind: Any, number: int) -> Iterator[tuple[int, list[Document]]]:
    if isinstance(kind, str):
        return
    if kind["type"] == "struct":
        yield from _children(kind["fields"], number)
    for part in ("element", "key", "value"):
        if part in kind:
            yield from _children_of(kind[part], kind[f"{part}-id"])


def _ids_of(fields: list[Document]) -> set[int]:
    return {parent for parent, _ in _children(fields)}


def _document_of(definition: Definition, part: str) -> Any:
    """A part as pyiceberg writes it again, once it is stored."""
    from pyiceberg.schema import Schema

    if part == "schema":
        return _plain_schema(Schema.model_validate(copy.deepcopy(definition.schema)))
    return definition.spec if part == "spec" else definition.order


def _marks(metadata: Any) -> dict[str, set[str]]:
    """The marks of all schemas, specs and orders that a table has."""
    return {
        "schema": {mark(_plain_schema(each)) for each in metadata.schemas},
        "spec": {mark(_fields_of(each)) for each in metadata.partition_specs},
        "order": {mark(_fields_of(each)) for each in metadata.sort_orders},
    }


def _plain_schema(schema: Any) -> Document:
    document = json.loads(schema.model_dump_json())
    ids = sorted(document.get("identifier-field-ids") or ())
    return {"type": "struct", "fields": document["fields"], "identifier-field-ids": ids}


def _fields_of(model: Any) -> Any:
    return json.loads(model.model_dump_json())["fields"]


def _identity(metadata: Any) -> tuple[Any, ...]:
    return (
        metadata.format_version,
        metadata.current_schema_id,
        metadata.last_column_id,
        metadata.default_spec_id,
        metadata.last_partition_id,
        metadata.default_sort_order_id,
        metadata.properties,
    )


def _required(metadata: Any) -> tuple[Any, ...]:
    from pyiceberg.table import update

    requirements = [
        _made(update.AssertCurrentSchemaId, "current-schema-id", metadata.current_schema_id),
        _made(update.AssertLastAssignedFieldId, "last-assigned-field-id", metadata.last_column_id),
        _made(update.AssertDefaultSpecId, "default-spec-id", metadata.default_spec_id),
        _made(
            update.AssertDefaultSortOrderId,
            "default-sort-order-id",
            metadata.default_sort_order_id,
        ),
    ]
    if metadata.last_partition_id is not None:
        last = "last-assigned-partition-id"
        requirements.append(
            _made(update.AssertLastAssignedPartitionId, last, metadata.last_partition_id)
        )
    return tuple(requirements)


def _made(kind: Any, name: str, value: Any) -> Any:
    """Pyiceberg's object of a class with one argument, which has a name as JSON has them."""
    arguments: dict[str, Any] = {name: value}
    return kind(**arguments)


def _schema_updates(metadata: Any, after: Definition) -> Iterator[Any]:
    from pyiceberg.schema import Schema
    from pyiceberg.table import update

    wanted = mark(_document_of(after, "schema"))
    same = [each.schema_id for each in metadata.schemas if mark(_plain_schema(each)) == wanted]
    number = 1 + max(each.schema_id for each in metadata.schemas)
    if not same:
        document = {**copy.deepcopy(after.schema), "schema-id": number}
        yield update.AddSchemaUpdate(schema=Schema.model_validate(document))
    yield _made(update.SetCurrentSchemaUpdate, "schema-id", same[0] if same else -1)


def _spec_updates(metadata: Any, after: Definition) -> Iterator[Any]:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.table import update

    number = 1 + max(each.spec_id for each in metadata.partition_specs)
    wanted = PartitionSpec.model_validate({"spec-id": number, "fields": after.spec})
    same = [e.spec_id for e in metadata.partition_specs if wanted.compatible_with(e)]
    if not same:
        yield update.AddPartitionSpecUpdate(spec=wanted)
    yield _made(update.SetDefaultSpecUpdate, "spec-id", same[0] if same else -1)


def _order_updates(metadata: Any, after: Definition) -> Iterator[Any]:
    from pyiceberg.table import update
    from pyiceberg.table.sorting import SortOrder

    same = [each.order_id for each in metadata.sort_orders if _fields_of(each) == after.order]
    # The specification reserves 0 for the order of no fields.
    number = 1 + max((each.order_id for each in metadata.sort_orders), default=0)
    if not same:
        document = {"order-id": number if after.order else 0, "fields": after.order}
        order = SortOrder.model_validate(document)
        yield _made(update.AddSortOrderUpdate, "sort-order", order)
    last = 0 if not after.order else -1
    number = same[0] if same else last
    yield _made(update.SetDefaultSortOrderUpdate, "sort-order-id", number)
