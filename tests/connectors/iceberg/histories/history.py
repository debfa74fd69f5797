"""One table, which this project, Spark with Iceberg, its library and pyiceberg change in turn."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import ManifestContent
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.compaction import CompactMode, CompactSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, Source, SqlSource, TableName
from spark_jobs.contract.result import Metrics
from spark_jobs.run import run
from tests.connectors.iceberg.histories.model import FIELDS, Model, Row
from tests.connectors.iceberg.histories.places import places_of, random_replacing
from tests.connectors.iceberg.histories.row_ids import RowIds
from tests.connectors.iceberg.histories.statements import (
    FIRST,
    MERGES,
    OTHERS,
    Statement,
    query_of,
    random_source,
)
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

_SPECS: Final = (
    "",
    "PARTITIONED BY (p)",
    "PARTITIONED BY (bucket(4, id))",
    "PARTITIONED BY (days(at))",
    "PARTITIONED BY (truncate(3, id), months(d), p)",
)
_KINDS: Final = (
    *("merge", "merge", "merge", "statement", "merge by Java", "statement by Java"),
    *(*["append by pyiceberg"] * 2, "roll back", "schema", "spec", "rewrite_data_files"),
    *("rewrite_manifests", "delete by value", "compact", "compact", "sort order", "upgrade"),
    *("replace", "replace"),
)
_ORDERS: Final = (
    "UNORDERED",
    "ORDERED BY {v} DESC NULLS FIRST, id",
    "LOCALLY ORDERED BY days({at}) ASC NULLS LAST, {p} DESC",
    "LOCALLY ORDERED BY bucket(3, id), truncate(1, {p}), {m}",
)
# Fields by whose values rows are deleted, one or several at a time.
_KEYS: Final = (("id",), ("p",), ("v", "d"), ("m",), ("at", "p", "id"), ("d",), ("extra", "v"))
_REWRITE_ALL: Final = "table => '{u}', options => map('rewrite-all', 'true')"
# Spark's procedure takes ten times as long as Iceberg's library.
_BY_PROCEDURE: Final = 0.15


@dataclass
class History:
    """The table ``db.h<seed>``; everything follows from the seed.

    ``done`` and ``kinds``: what was done so far, and of which kind it was.
    """

    spark: SparkSession
    java: IcebergSpark
    seed: int
    done: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    model: Model = field(default_factory=Model)
    ids: RowIds = field(default_factory=RowIds)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.name = f"h{self.seed}"
        self._deck: list[str] = []
        self.version = version = self.chance.choice((1, 2, 2, 3))
        # Pyiceberg does not read equality deletes.
        self.is_deleted_by_value = False
        modes = ("merge-on-read", "copy-on-write")
        self.mode = "copy-on-write" if version == 1 else self.chance.choice(modes)
        spec = self.chance.choice(_SPECS)
        properties = ", ".join(
            f"'write.{each}.mode'='{self.mode}'" for each in ("merge", "update", "delete")
        )
        # Pyiceberg reads no Avro, and of ORC no promoted columns.
        formats = (*["parquet"] * 4, "orc", "avro")
        self.file_format = random.Random(f"format {self.seed}").choice(formats)
        properties += f", 'write.format.default'='{self.file_format}'"
        self._did("created", f"created {spec or 'without partitions'}, version {version}")
        self._sql(
            "CREATE TABLE {t} (id BIGINT NOT NULL, p STRING, v INT, at TIMESTAMP, d DATE, "
            f"m DECIMAL(12,2), n STRUCT<x: INT>) USING iceberg {spec} "
            f"TBLPROPERTIES ('format-version'='{version}', {properties})"
        )
        self._run_by_java(FIRST)

    def library(self) -> Any:
        """The table now, as pyiceberg opens it."""
        return self.java.library().load_table(("db", self.name))

    def step(self) -> None:
        """Change the table, and the model likewise.

        Raises:
            AssertionError: this project cannot.
            IcebergSparkError: Spark with Iceberg cannot.
        """
        if not self._deck:
            self._deck = self.chance.sample(_KINDS, len(_KINDS))
        acts: dict[str, Callable[[], None]] = {
            "merge": lambda: self._run_here(self.chance.choice(MERGES)),
            "statement": lambda: self._run_here(self._statement()),
            "merge by Java": lambda: self._run_by_java(self.chance.choice(MERGES)),
            "statement by Java": lambda: self._run_by_java(self._statement()),
            "append by pyiceberg": self._append_by_pyiceberg,
            "roll back": self._roll_back,
            "schema": self._change_schema,
            "spec": self._change_spec,
            "rewrite_data_files": lambda: self._call(f"rewrite_data_files({_REWRITE_ALL})"),
            "rewrite_manifests": lambda: self._call("rewrite_manifests('{u}')"),
            "delete by value": self._delete_by_value,
            "compact": self._compact,
            "sort order": self._change_order,
            "upgrade": self._upgrade,
            "replace": self._replace,
        }
        acts[self._deck.pop()]()

    def end(self) -> None:
        """Maintain the table; raises as ``step``."""
        self._call("rewrite_manifests('{u}')")
        if self.chance.random() < _BY_PROCEDURE:
            older = "older_than => TIMESTAMP'2100-01-01 00:00:00'"
            self._call(f"expire_snapshots(table => '{{u}}', {older}, retain_last => 1)")
        else:
            self._did("expire_snapshots", "expire_snapshots without Spark")
            self.java.expire(f"db.{self.name}")

    def note(self, head: int | None) -> None:
        """Remember the rows of the snapshot that the table has now."""
        self.ids.tag(self.model)
        if head is not None:
            self.model.snapshots[head] = self.model.rows

    def _did(self, kind: str, text: str) -> None:
        self.kinds.append(kind)
        self.done.append(text)

    def _upgrade(self) -> None:
        if self.version != 2:
            self._run_here(self.chance.choice(MERGES))
            return
        self._did("upgrade", "upgrade to version 3")
        self._sql("ALTER TABLE {t} SET TBLPROPERTIES ('format-version'='3')")
        self.version = 3

    def _sql(self, text: str, **values: str) -> None:
        names = {"t": f"{CATALOG}.db.{self.name}", "u": f"db.{self.name}", **values}
        self.java.sql(text.format(**names))

    def _call(self, text: str) -> None:
        self._did(text.partition("(")[0], text)
        self._sql(f"CALL {CATALOG}.system.{text}")

    def _statement(self) -> Statement:
        return self.chance.choice([s for s in OTHERS if s.needs in self.model.columns])

    def _run_here(self, statement: Statement) -> None:
        source, k = random_source(self.chance), self.chance.randrange(1, 12)
        names = {"t": f"db.{self.name}", "s": "s", "k": k, **self.model.columns}
        text = statement.text.format(**names)
        self._did(f"{text.partition(' ')[0]}, {self.mode}", text)
        parsed = parse_statement(text, ["s"])
        self._request(parsed.statement, SqlSource("s", query_of(source)), *parsed.sources)
        self.model.rows = statement.meaning(self.model.rows, source, k)

    def _replace(self) -> None:
        """Replace partitions of the current spec, whatever files there are."""
        places = places_of(self.library(), self.model.columns)
        while not places:
            self._change_spec()
            places = places_of(self.library(), self.model.columns)
        source, columns = random_source(self.chance), self.model.columns
        found = random_replacing(self.chance, places, columns, self.model.rows, source)
        self._did(f"{found.statement.kind}, {self.mode}", f"{found.statement} {found.new}")
        sources = [SqlSource("s", query_of(source))] if found.new else []
        metrics = self._request(found.statement, *sources)
        wanted = len(self.model.rows) - len(found.kept), len(found.new)
        assert (metrics.deleted, metrics.inserted) == wanted
        self.model.rows = [*found.kept, *found.new]

    def _compact(self) -> None:
        modes: tuple[CompactMode, ...] = ("minor", "full", "full", "deletes")
        mode, columns = self.chance.choice(modes), self.model.columns
        asked: dict[str, tuple[str, ...]] = self.chance.choice(
            (
                {},
                {"sort_by": (f"{columns['p']} DESC", "id NULLS LAST")},
                {"zorder_by": (columns["v"], columns["m"], columns["at"])},
            )
        )
        asked = {} if mode == "deletes" else asked
        self._did("compact", f"compact, {mode} {asked}")
        self._request(CompactSpec(mode=mode, min_files=2, **asked))
        if mode == "full":
            self._require_current_spec()

    def _require_current_spec(self) -> None:
        table = self.library()
        snapshot, current = table.current_snapshot(), table.spec().spec_id
        manifests = snapshot.manifests(table.io) if snapshot else []
        older = [
            each.manifest_path
            for each in manifests
            if each.content == ManifestContent.DATA and each.partition_spec_id != current
            if each.added_files_count or each.existing_files_count
        ]
        assert not older, f"files of older specs are left in {older}"

    def _change_order(self) -> None:
        text = self.chance.choice(_ORDERS)
        self._did("sort order", text)
        self._sql(f"ALTER TABLE {{t}} WRITE {text}", **self.model.columns)

    def _request(self, statement: Any, *sources: Source) -> Metrics:
        request = JobRequest(
            operation_id=str(uuid.UUID(int=self.chance.getrandbits(128))),
            target=TableName("db", self.name),
            catalog=CatalogSpec("iceberg", str(self.java.warehouse), self.java.options),
            statement=statement,
            sources=sources,
        )
        result = run(request, self.spark)
        assert result.error is None, result.error
        return result.metrics

    def _run_by_java(self, statement: Statement) -> None:
        source, k = random_source(self.chance), self.chance.randrange(1, 12)
        text, columns = statement.text, {"k": str(k), **self.model.columns}
        kind = text.partition(" ")[0]
        self._did(
            f"{kind} by Java, {self.mode}", f"by Java: {text.format(t='t', s='s', **columns)}"
        )
        self._sql(text, s=f"({query_of(source)}) s", **columns)
        self.model.rows = statement.meaning(self.model.rows, source, k)

    def _append_by_pyiceberg(self) -> None:
        table = self.library()
        transforms = {str(each.transform) for each in table.spec().fields}
        if self.version == 3 or transforms - {"identity"} or self.file_format != "parquet":
            self._run_here(OTHERS[-1])  # pyiceberg computes no transforms, and no version 3
            return
        self._did("append by pyiceberg", "append by pyiceberg")
        empty = dict.fromkeys(FIELDS)
        rows: list[Row] = [{**empty, "id": 2000 + n, "p": "ü", "v": n} for n in range(3)]
        named = [{self.model.columns[each]: row[each] for each in row} for row in rows]
        table.append(pa.Table.from_pylist(named, schema=table.schema().as_arrow()))
        self.model.rows = [*self.model.rows, *rows]

    def _delete_by_value(self) -> None:
        """Delete the rows with the values of some, by equality deletes in each partition."""
        keys = self.chance.choice(_KEYS)
        rows = self.chance.sample(self.model.rows, min(3, len(self.model.rows)))
        if self.version == 1 or not rows or not set(keys) <= self.model.columns.keys():
            self._run_here(OTHERS[-1])
            return
        self._did("delete by value", f"delete by the values of {keys} in {rows}")
        names = [self.model.columns[each] for each in keys]
        values = [[row.get(each) for each in keys] for row in rows]
        schema = self.library().schema().select(*names).as_arrow()
        columns = [
            _column([row[number] for row in values], schema.field(name).type)
            for number, name in enumerate(names)
        ]
        place = self.java.folder / f"{self.name}-{len(self.done)}.parquet"
        fields = pa.schema(map(schema.field, names))
        pq.write_table(pa.Table.from_arrays(columns, schema=fields), place)
        self.java.steps(f"db.{self.name}", ("delete_values", names, str(place), len(rows)))
        self.is_deleted_by_value = True
        self.model.rows = [
            row for row in self.model.rows if [row.get(each) for each in keys] not in values
        ]

    def _roll_back(self) -> None:
        place = self.chance.randrange(len(self.model.snapshots))
        snapshot_id = list(self.model.snapshots)[place]
        self._did("roll back", f"roll back to snapshot {place} of {len(self.model.snapshots)}")
        self._sql(f"CALL {CATALOG}.system.set_current_snapshot('{{u}}', {snapshot_id})")
        self.model.rows = self.model.snapshots[snapshot_id]

    def _change_schema(self) -> None:
        columns, number = self.model.columns, len(self.done)
        renamed = self.chance.choice(("p", "v", "at", "d", "m"))
        extra = "DROP COLUMN {extra}" if "extra" in columns else "ADD COLUMN extra STRING"
        text = self.chance.choice(
            (
                extra,
                extra,
                f"ADD COLUMN n.y{number} INT",
                f"RENAME COLUMN {{{renamed}}} TO {renamed}{number}",
                "ALTER COLUMN {v} TYPE BIGINT",
                "ALTER COLUMN {m} TYPE DECIMAL(14,2)",
            )
        )
        self._did("schema", text.format(**columns))
        self._sql(f"ALTER TABLE {{t}} {text}", **columns)
        match text.split():
            case ["DROP", *_]:
                self.model.drop("extra")
            case ["ADD", _, "extra", _]:
                columns["extra"] = "extra"
            case ["ADD", *_]:
                self.model.nested[f"y{number}"] = f"y{number}"
            case ["RENAME", *_]:
                columns[renamed] = f"{renamed}{number}"

    def _change_spec(self) -> None:
        number = len(self.done)
        text = self.chance.choice(
            (
                f"ADD PARTITION FIELD bucket(1{number}, id)",
                f"ADD PARTITION FIELD truncate({number}0, {{m}})",
                *(f"DROP PARTITION FIELD {each.name}" for each in self.library().spec().fields),
            )
        )
        self._did("spec", text)
        self._sql(f"ALTER TABLE {{t}} {text}", **self.model.columns)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values of the model as those of a column; times are texts in UTC."""
    found = pa.array(values)
    return found.cast(pa.timestamp("us") if pa.types.is_timestamp(kind) else kind).cast(kind)
