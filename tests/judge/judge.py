"""Paimon's own Java reader, kept running for the whole test session.

``read_with_java`` and ``facts_from_java`` may be called after every statement of a test: the JVM is
started once, on the first call, and opens the catalog anew for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.judge.jvm import server
from tests.support.judged_values import Row, from_java


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a data file's entry says about one column."""

    minimum: Any
    maximum: Any
    null_count: int | None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A live data file of the latest snapshot."""

    name: str
    partition: tuple[Any, ...]
    bucket: int
    rows: int
    bytes: int
    sequence_numbers: tuple[int, int]
    statistics: dict[str, Statistics]


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of the latest snapshot; ``rows`` counts those in its files."""

    values: tuple[Any, ...]
    rows: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Facts:
    """A table as Java sees it; ``snapshots`` and ``schema`` are Paimon's JSON documents."""

    snapshots: list[dict[str, Any]]
    partitions: list[Partition]
    files: list[DataFile]
    options: dict[str, str]
    schema: dict[str, Any]


def read_with_java(
    warehouse: Path | str,
    table: str,
    *,
    snapshot: int | None = None,
    branch: str | None = None,
    tag: str | None = None,
    where: tuple[str, Any] | None = None,
    tracked: bool = False,
) -> list[Row]:
    """The rows of ``table`` (``db.table``), with the values of ``tests.support.judged_values``.

    ``where`` is a column and a value that the reader may use to skip files by their statistics and
    partitions: rows with other values can be among the result, none with this value may be missing.
    ``tracked``: with ``_ROW_ID`` and ``_SEQUENCE_NUMBER``, of a table that tracks rows.

    Raises:
        JudgeMissingError: there is no JDK, or Paimon's library cannot be fetched.
        JudgeError: the Java reader failed.
    """
    request: dict[str, Any] = {"snapshot": snapshot, "branch": branch, "tag": tag}
    request["tracked"] = tracked
    if where is not None:
        request["where"] = {"column": where[0], "value": where[1]}
    kinds: dict[str, Any] = {}
    rows = []
    for answer in server("ReadPaimon").ask(
        mode="rows", warehouse=str(warehouse), table=table, **request
    ):
        if "field" in answer:
            kinds[answer["field"]["name"]] = answer["field"]["type"]
        else:
            values = zip(kinds.items(), answer["row"], strict=True)
            rows.append({name: from_java(kind, value) for (name, kind), value in values})
    return rows


def changelog_from_java(
    warehouse: Path | str, table: str, first_snapshot: int
) -> list[tuple[str, Row]]:
    """What a stream that starts at a snapshot has read at the latest one: kinds and rows, in order.

    Kinds are ``+I``, ``-U``, ``+U`` and ``-D``.
    """
    kinds: dict[str, Any] = {}
    changes = []
    for answer in server("ReadPaimon").ask(
        mode="changelog", warehouse=str(warehouse), table=table, **{"from": first_snapshot}
    ):
        if "field" in answer:
            kinds[answer["field"]["name"]] = answer["field"]["type"]
        else:
            values = zip(kinds.items(), answer["row"], strict=True)
            row = {name: from_java(kind, value) for (name, kind), value in values}
            changes.append((answer["kind"], row))
    return changes


def misplaced_for_java(warehouse: Path | str, table: str) -> list[dict[str, Any]]:
    """Rows in another bucket than that into which Java's writer would put them.

    ``row`` (a list, as the reader answers), ``is`` and ``belongs``: the two buckets.
    """
    answers = server("ReadPaimon").ask(mode="buckets", warehouse=str(warehouse), table=table)
    return [each for each in answers if each["is"] != each["belongs"]]


def facts_from_java(warehouse: Path | str, table: str) -> Facts:
    """Snapshots, partitions, files with statistics, options and schema of ``table``."""
    (answer,) = server("ReadPaimon").ask(mode="facts", warehouse=str(warehouse), table=table)
    facts = answer["facts"]
    types = {field["name"]: field["type"] for field in facts["schema"]["fields"]}
    keys = [types[name] for name in facts["schema"]["partitionKeys"]]
    return Facts(
        snapshots=facts["snapshots"],
        partitions=[
            Partition(_values(keys, p["values"]), p["rows"], p["files"], p["bytes"])
            for p in facts["partitions"]
        ],
        files=[_data_file(types, keys, each) for each in facts["files"]],
        options=facts["options"],
        schema=facts["schema"],
    )


def _values(kinds: list[Any], values: list[Any]) -> tuple[Any, ...]:
    return tuple(from_java(kind, value) for kind, value in zip(kinds, values, strict=True))


def _data_file(types: dict[str, Any], keys: list[Any], facts: dict[str, Any]) -> DataFile:
    statistics = {
        name: Statistics(*_values([types[name]] * 2, [low, high]), nulls)
        for name, (low, high, nulls) in facts["statistics"].items()
        if name in types
    }
    return DataFile(
        name=facts["name"],
        partition=_values(keys, facts["partition"]),
        bucket=facts["bucket"],
        rows=facts["rows"],
        bytes=facts["bytes"],
        sequence_numbers=tuple(facts["sequence"]),
        statistics=statistics,
    )
