"""What a write changes in each bucket, from the fragments of its sinks. Driver only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon import index_library, library
from spark_jobs.connectors.paimon.external_paths import external_paths
from spark_jobs.connectors.paimon.index_library import IndexFile
from spark_jobs.connectors.paimon.native import PaimonTable
from spark_jobs.connectors.paimon.new_rows import Place
from spark_jobs.connectors.paimon.sequence_numbers import SequenceNumbers, numbers_of, place_of
from spark_jobs.connectors.paimon.vectors import VectorRange, copied_index
from spark_jobs.errors import ErrorCode, InternalError
from spark_jobs.files.statistics import ColumnStatistics
from spark_jobs.files.values import decode_value
from spark_jobs.spi.writes import Fragment


@dataclass(slots=True)
class _Changes:
    """Of one bucket; the lists hold objects of pypaimon."""

    added: list[Any] = field(default_factory=list)
    removed: list[Any] = field(default_factory=list)
    index_adds: list[Any] = field(default_factory=list)
    index_deletes: list[Any] = field(default_factory=list)


def commit_messages(
    table: PaimonTable,
    fragments: Sequence[Fragment],
    filesystem: pafs.FileSystem,
    index_prefix: str,
) -> list[Any]:
    """One message for each bucket that changes.

    An index file with the vector of a file that changes is replaced: what else it holds is copied
    to a new one, whose name starts with ``index_prefix``.

    Raises:
        InternalError: two fragments change the same file.
    """
    documents = [fragment.document for fragment in fragments]
    _require_each_file_once(documents)
    changes: dict[Place, _Changes] = defaultdict(_Changes)
    entries = [entry for _, entry in table.located_entries]
    numbers = SequenceNumbers(entries, ordered=table.buckets is not None)
    touched: set[str] = set()
    for document in documents:
        if "index" in document:
            touched |= _add_index(table, document["index"], changes)
        else:
            touched |= _change_file(table, document, changes, numbers)
    for number, file in enumerate(f for f in table.index_files if touched & f.vectors.keys()):
        path = f"{file.path.rpartition('/')[0]}/{index_prefix}copy-{number}"
        _replace_index(table, file, touched, filesystem, path, changes)
    base_id = table.snapshot.id if table.snapshot else None
    return [
        library.commit_message(
            partition,
            bucket,
            each.added,
            each.removed,
            base_id,
            each.index_adds,
            each.index_deletes,
        )
        for (partition, bucket), each in sorted(changes.items(), key=lambda item: repr(item[0]))
    ]


def _require_each_file_once(documents: Sequence[Mapping[str, Any]]) -> None:
    counts = Counter(
        ordinal
        for document in documents
        for ordinal in (
            [vector[0] for vector in document["index"]["vectors"]]
            if "index" in document
            else [document["removed"]]
        )
        if ordinal is not None
    )
    if any(count > 1 for count in counts.values()):
        raise InternalError(
            ErrorCode.INTERNAL_ERROR,
            "A file was changed by two tasks.",
            "This is a defect: report it with the statement.",
        )


def _change_file(
    table: PaimonTable,
    document: Mapping[str, Any],
    changes: dict[Place, _Changes],
    numbers: SequenceNumbers,
) -> set[str]:
    """Take a file that came, went or was replaced; the name of the one that went."""
    ordinal, file = document["removed"], document["added"]
    touched = set()
    if ordinal is not None:
        entry = table.located_entries[ordinal][1]
        place, of_rows = place_of(entry), numbers_of(entry)
        changes[place].removed.append(entry.file)
        touched = {entry.file.file_name}
    else:
        place = Place(tuple(map(decode_value, file["partition"])), file["bucket"])
        of_rows = numbers.of_new_file(place, file["rows"])
    if file is not None:
        changes[place].added.append(_data_file(table, file, of_rows))
    return touched


def _add_index(
    table: PaimonTable, index: Mapping[str, Any], changes: dict[Place, _Changes]
) -> set[str]:
    """Take a new index file; the names of the data files whose vectors it has."""
    entries = {v[0]: table.located_entries[v[0]][1] for v in index["vectors"]}
    vectors = {
        entries[ordinal].file.file_name: VectorRange(*place) for ordinal, *place in index["vectors"]
    }
    place = place_of(next(iter(entries.values())))
    changes[place].index_adds.append(
        index_library.new_vector_index(
            table.table, place.partition, place.bucket, index["path"], index["size"], vectors
        )
    )
    return set(vectors)


def _replace_index(
    table: PaimonTable,
    file: IndexFile,
    touched: set[str],
    filesystem: pafs.FileSystem,
    path: str,
    changes: dict[Place, _Changes],
) -> None:
    partition, bucket = tuple(file.entry.partition.values), file.entry.bucket
    changed = changes[Place(partition, bucket)]
    changed.index_deletes.append(index_library.removed_index(file.entry))
    kept = {name: table.vectors[name] for name in file.vectors if name not in touched}
    if kept:
        size, vectors = copied_index(filesystem, path, kept)
        changed.index_adds.append(
            index_library.new_vector_index(table.table, partition, bucket, path, size, vectors)
        )


def _data_file(table: PaimonTable, file: Mapping[str, Any], numbers: tuple[int, int]) -> Any:
    statistics = {
        name: ColumnStatistics.from_json(each) for name, each in file["statistics"].items()
    }
    path, size, rows = file["path"], file["size"], file["rows"]
    is_external = external_paths(table.options) is not None
    return library.new_data_file(
        table.table, path, size, rows, statistics, numbers, is_external=is_external
    )
