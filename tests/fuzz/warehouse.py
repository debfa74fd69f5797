"""A small warehouse with everything in it that a job reads, and the attacks on its files."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.spi import rows
from tests.fuzz.binary_mutations import hostile_avro, hostile_index, hostile_parquet
from tests.fuzz.mutations import OUTSIDE, damaged_bytes, hostile_json
from tests.support import paimon_tables

MARKED = TableName("shop", "marked")
REWRITTEN = TableName("shop", "rewritten")
TABLES = (MARKED, REWRITTEN)
# An operation that committed, one that was killed while it ran, and that of the attacked merge.
DONE, KILLED, NEW = "op-done", "op-killed", "op-new"

_COLUMNS = {
    "id": "BIGINT",
    "name": "STRING",
    "price": "DECIMAL(10, 2)",
    "day": "DATE",
    "at": "TIMESTAMP_NTZ",
    "ratio": "DOUBLE",
    "tags": "ARRAY<STRING>",
    "place": "STRUCT<city: STRING, zip: INT>",
}


def build(folder: Path) -> Path:
    """The warehouse, in ``folder``, beside a file that no job may ever touch."""
    warehouse = folder / "warehouse"
    warehouse.mkdir(parents=True)
    (folder / OUTSIDE).write_text("nobody reads this")
    with mock.patch("uuid.uuid4", _repeatable_ids()):
        _fill(warehouse)
    return warehouse


def _repeatable_ids() -> Callable[[], uuid.UUID]:
    """So that a seed attacks the same place of the same file in every run."""
    random = Random(0)
    return lambda: uuid.UUID(int=random.getrandbits(128), version=4)


def _fill(warehouse: Path) -> None:
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    marking = {"deletion-vectors.enabled": "true"}
    paimon_tables.create(connector, {"id": "BIGINT", "name": "STRING"}, ["name"], marking, MARKED)
    paimon_tables.create(connector, _COLUMNS, (), {}, REWRITTEN)
    for name, make in ((MARKED, _marked_row), (REWRITTEN, _row)):
        for start in (0, 300):
            values = [make(number) for number in range(start, start + 300)]
            paimon_tables.append(connector, values, f"append-{start}", name)
        table = connector.metadata.load_table(name)
        gone = [{"file": 0, "position": position} for position in range(2, 90, 3)]
        delete = paimon_tables.change_rows(table, rows.DELETE, gone)
        paimon_tables.merge(connector, table, delete, operation_id=DONE)
        paimon_tables.begin(connector, connector.metadata.load_table(name), KILLED)
    OperationLog(connector.storage).store(
        JobResult(DONE, "committed", str(MARKED), "digest", new_snapshot_id=3)
    )


def _marked_row(number: int) -> dict[str, Any]:
    return {"id": number, "name": ("a/b", "c%2F..", "d=e")[number % 3]}


def _row(number: int) -> dict[str, Any]:
    if number % 17 == 0:
        return {"id": number}
    return {
        "id": number,
        "name": f"name {number % 20}",
        "price": Decimal(number) / 4,
        "day": date(2024, 1, 1 + number % 28),
        "at": datetime(2024, 1, 1, number % 24),  # noqa: DTZ001 - a column without a time zone
        "ratio": number / 7,
        "tags": [f"t{number % 3}", None],
        "place": {"city": f"c{number % 5}", "zip": number},
    }


@dataclass(frozen=True)
class Attack:
    """One file of the warehouse, and what becomes of it."""

    seed: int
    path: str
    kind: str
    content: bytes

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.kind} of {self.path}"


def attack(warehouse: Path, seed: int) -> Attack:
    """The attack of this seed: kinds of files come equally often, however many there are."""
    random = Random(seed)
    by_kind: dict[str, list[Path]] = {}
    for path in sorted(each for each in warehouse.rglob("*") if each.is_file()):
        by_kind.setdefault(_kind(path), []).append(path)
    kind = random.choice(sorted(by_kind))
    path = random.choice(by_kind[kind])
    data = path.read_bytes()
    form = random.choice(("damaged", "hostile", "hostile"))
    content = (damaged_bytes if form == "damaged" else _HOSTILE[kind])(data, random)
    return Attack(seed, str(path.relative_to(warehouse)), f"{form} {kind}", content)


def _kind(path: Path) -> str:
    if path.parent.name == "manifest":
        return path.name.split("-")[0] + ("-list" if "list" in path.name else "")
    if path.suffix == ".parquet":
        return "data"
    folder = path.parent.name
    if folder == "snapshot" and not path.name.startswith("snapshot-"):
        return "hint"
    return folder


_HOSTILE: dict[str, Callable[[bytes, Random], bytes]] = {
    "manifest": hostile_avro,
    "manifest-list": hostile_avro,
    "index": hostile_index,
    "data": hostile_parquet,
    "hint": damaged_bytes,
    "snapshot": hostile_json,
    "schema": hostile_json,
    "consumer": hostile_json,
    "_operations": hostile_json,
}


def attacked_copy(warehouse: Path, attack: Attack, folder: Path) -> Path:
    """A copy of the warehouse with the attacked file, below ``folder``."""
    copy = folder / "warehouse"
    shutil.copytree(warehouse, copy)
    (copy / attack.path).write_bytes(attack.content)
    return copy
