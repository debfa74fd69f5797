"""What a schema says about a table with a primary key. Driver only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, cast

from spark_jobs.connectors.paimon.keyed.merge_engines import EngineKind, MergeEngine
from spark_jobs.connectors.paimon.library.table_schema import PaimonSchema
from spark_jobs.spi.writes import InsertedKeys

_DEFAULT_FUNCTION: Final = "last_non_null_value"
_DEFAULT_TRIGGER: Final = 5

ChangelogProducer = Literal["none", "input", "lookup", "full-compaction"]


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """A table with a primary key.

    ``key`` is the primary key without the partition keys, in its order. ``highest_level`` is the
    last level of its buckets. ``hides_level_0``: batch readers do not see level 0 until it is
    compacted. ``producer`` says who writes the table's changelog. ``looks_up``: compactions look up
    older records (``CoreOptions.lookupStrategy``).
    """

    key: tuple[str, ...]
    engine: MergeEngine
    highest_level: int
    hides_level_0: bool
    producer: ChangelogProducer = "none"
    looks_up: bool = False

    def appends(self, inserted_keys: InsertedKeys) -> bool:
        """Whether changes are appended as records of level 0; otherwise sections are rewritten.

        That is exact only where the newest record of a key wins by itself and readers see it. The
        changelog of appended records is left to Paimon's compaction, if any compaction writes it.
        """
        return (
            self.engine.kind == "deduplicate"
            and not self.engine.sequence_fields
            and not self.hides_level_0
            and inserted_keys is not InsertedKeys.CHECKED
            and self.producer != "input"
        )

    def owes_changelog(self, level: int) -> bool:
        """Whether Paimon's compaction has still to write the changelog of a file of ``level``."""
        if self.producer == "full-compaction":
            return level < self.highest_level
        return self.producer == "lookup" and level == 0


def keyed_table(schema: PaimonSchema) -> KeyedTable | None:
    """What ``schema`` says about its primary key; None without one."""
    if not schema.primary_keys:
        return None
    options = schema.options
    engine = merge_engine(schema)
    trigger = int(options.get("num-sorted-run.compaction-trigger", _DEFAULT_TRIGGER))
    levels = int(options.get("num-levels", trigger + 1))
    producer = options.get("changelog-producer", "none").strip().lower()
    forces_lookup = options.get("force-lookup", "false").strip().lower() == "true"
    return KeyedTable(
        key=trimmed_key(schema),
        engine=engine,
        highest_level=levels - 1,
        hides_level_0=schema.marks_rows or engine.kind == "first-row",
        producer=cast("ChangelogProducer", producer),
        looks_up=engine.kind != "first-row"
        and (producer == "lookup" or schema.marks_rows or forces_lookup),
    )


def trimmed_key(schema: PaimonSchema) -> tuple[str, ...]:
    """The primary key without the partition keys."""
    return tuple(name for name in schema.primary_keys if name not in schema.partition_keys)


def merge_engine(schema: PaimonSchema) -> MergeEngine:
    """The merge engine of a table whose options are not refused."""
    options = schema.options
    kind = options.get("merge-engine", "deduplicate").lower()
    fields = options.get("sequence.field", "").split(",")
    order = options.get("sequence.field.sort-order", "ascending").lower()
    default = options.get("fields.default-aggregate-function", _DEFAULT_FUNCTION)
    functions = {
        column.name: options.get(f"fields.{column.name}.aggregate-function", default)
        for column in schema.columns
    }
    return MergeEngine(
        kind=cast("EngineKind", kind),
        sequence_fields=tuple(name.strip() for name in fields if name.strip()),
        sequence_descending=order == "descending",
        functions=functions if kind == "aggregation" else {},
    )
