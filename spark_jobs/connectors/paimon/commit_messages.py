"""What a write changes in each bucket, from the fragments of its sinks. Driver only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon import library
from spark_jobs.connectors.paimon.index_changes import IndexChanges, index_changes
from spark_jobs.connectors.paimon.native import PaimonTable
from spark_jobs.connectors.paimon.new_rows import Place
from spark_jobs.connectors.paimon.sequence_numbers import SequenceNumbers, numbers_of, place_of
from spark_jobs.errors import ErrorCode, InternalError
from spark_jobs.files.statistics import ColumnStatistics
from spark_jobs.files.values import decode_value
from spark_jobs.spi.writes import Fragment


@dataclass(slots=True)
class _Changes:
    """Of one bucket; the lists hold objects of pypaimon."""

    added: list[Any] = field(default_factory=list)
    removed: list[Any] = field(default_factory=list)
    indexes: IndexChanges = field(default_factory=IndexChanges)


def commit_messages(
    table: PaimonTable,
    fragments: Sequence[Fragment],
    filesystem: pafs.FileSystem,
    index_prefix: str,
) -> list[Any]:
    """One message for each bucket that changes; names of new index files get ``index_prefix``.

    Raises:
        InternalError: two fragments change the same file.
    """
    documents = [fragment.document for fragment in fragments]
    _require_each_file_once(documents)
    changes: dict[Place, _Changes] = defaultdict(_Changes)
    entries = [entry for _, entry in table.located_entries]
    numbers = SequenceNumbers(entries, ordered=table.buckets is not None)
    gone: set[str] = set()
    for document in documents:
        if "index" not in document:
            gone |= _change_file(table, document, changes, numbers)
    written = [document["index"] for document in documents if "index" in document]
    of_indexes = index_changes(table, written, gone, filesystem, index_prefix)
    for place, each in of_indexes.items():
        changes[place].indexes = each
    base_id = table.snapshot.id if table.snapshot else None
    return [
        library.commit_message(
            partition,
            bucket,
            each.added,
            each.removed,
            base_id,
            each.indexes.adds,
            each.indexes.deletes,
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


def _data_file(table: PaimonTable, file: Mapping[str, Any], numbers: tuple[int, int]) -> Any:
    statistics = {
        name: ColumnStatistics.from_json(each) for name, each in file["statistics"].items()
    }
    path, size, rows = file["path"], file["size"], file["rows"]
    is_external = table.external is not None
    return library.new_data_file(
        table.table, path, size, rows, statistics, numbers, is_external=is_external
    )
