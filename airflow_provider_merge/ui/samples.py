"""A sample of the rows in which two snapshots differ: of few partitions, with few small files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from airflow_provider_merge.metadata.differing_files import DifferingFiles, RowFile
from airflow_provider_merge.submit.surroundings import environment_of_jobs
from airflow_provider_merge.ui.answers import PartitionSample, Sample
from airflow_provider_merge.ui.opened import OpenTable
from airflow_provider_merge.ui.row_samples.documents import (
    MOST_BYTES,
    MOST_COLUMNS,
    MOST_COMPARED_ROWS,
    Part,
    Question,
    family_of,
)
from airflow_provider_merge.ui.row_samples.process import read_rows
from spark_jobs.errors import NotSupportedError

_MOST_PARTITIONS: Final = 5
_MOST_FILES: Final = 20
_MOST_NOT_READ: Final = 20
# What a file's first rows may take.
_FIRST_BYTES: Final = 8 * 1024 * 1024
_NOT_READ: Final = "Not read: a sample is of few files, and of small ones first."


@dataclass(frozen=True, slots=True)
class PlannedSample:
    """What is read, and what is told without reading."""

    question: Question
    names: tuple[str, ...]
    answer: Sample


def plan_sample(table: OpenTable, sides: tuple[int, int]) -> PlannedSample:
    """Choose the partitions, those with the fewest bytes first.

    Raises:
        NotSupportedError: files of this table do not tell which rows differ.
    """
    before, after = (table.snapshot(each) for each in sides)
    differing = table.facts.differing_files(before, after)
    columns = table.facts.row_columns(after)
    shown = [(each, family) for each in columns if (family := family_of(each.type)) is not None]
    shown = shown[:MOST_COLUMNS]
    if not shown:
        raise NotSupportedError(
            f"{table.name} has no column whose values can be shown.",
            "Compare the table at both snapshots with a query.",
        )
    names = [each.name for each, _ in shown]
    chosen = {
        each.name: each for each in _chosen([each for each in differing if not each.obstacle])
    }
    others = [each for each in differing if each.name not in chosen]
    parts = tuple(map(_part, chosen.values()))
    first = next((location for part in parts for location, _ in (*part.removed, *part.added)), "")
    return PlannedSample(
        question=Question(
            columns=tuple((each.name, family, each.field_id) for each, family in shown),
            parts=parts,
            options=table.facts.file_options(first) if first else {},
        ),
        names=tuple(chosen),
        answer=Sample(
            total=len(differing),
            columns=names,
            left_out=[each.name for each in columns if each.name not in names],
            partitions=[
                PartitionSample(name=each.name, problem=each.obstacle or _NOT_READ)
                for each in others[:_MOST_NOT_READ]
            ],
        ),
    )


def read_sample(planned: PlannedSample) -> Sample:
    """Read the rows.

    Raises:
        CatalogError: LIBRARY_MISSING, DATA_FILE_UNREADABLE.
        TimeoutError: it took too long.
    """
    # Damaged files are read there: nothing of Airflow's own should be.
    environment = environment_of_jobs()
    found = read_rows(planned.question, environment) if planned.names else []
    read = [
        PartitionSample(
            name=name,
            removed=rows.removed,
            added=rows.added,
            removed_count=rows.removed_count,
            added_count=rows.added_count,
            problem=rows.problem,
        )
        for name, rows in zip(planned.names, found, strict=True)
    ]
    others = planned.answer.partitions
    return planned.answer.model_copy(update={"partitions": [*read, *others]})


def _chosen(candidates: Sequence[DifferingFiles]) -> list[DifferingFiles]:
    files, size = 0, 0
    chosen: list[DifferingFiles] = []
    for candidate in sorted(candidates, key=lambda each: sum(_costs(each))):
        costs = _costs(candidate)
        files, size = files + len(costs), size + sum(costs)
        if len(chosen) == _MOST_PARTITIONS or files > _MOST_FILES or size > MOST_BYTES:
            break
        chosen.append(candidate)
    return chosen


def _part(partition: DifferingFiles) -> Part:
    """All files, or the smallest one of a side that stands alone."""
    removed, added = partition.removed, partition.added
    if removed and added:
        return Part(_read(removed), _read(added), None)
    counts = (sum(each.rows for each in removed), sum(each.rows for each in added))
    return Part(_read(_smallest(removed)[:1]), _read(_smallest(added)[:1]), counts)


def _read(files: Sequence[RowFile]) -> tuple[tuple[str, int], ...]:
    return tuple((each.location, each.rows) for each in files)


def _costs(partition: DifferingFiles) -> list[int]:
    """The bytes of the files that have to be read; more than is allowed for too many rows."""
    files = [*partition.removed, *partition.added]
    if not partition.removed or not partition.added:
        return [min(each.size, _FIRST_BYTES) for each in _smallest(files)[:1]]
    too_many = sum(each.rows for each in files) > MOST_COMPARED_ROWS
    return [MOST_BYTES + 1 if too_many else each.size for each in files]


def _smallest(files: Sequence[RowFile]) -> list[RowFile]:
    return sorted((each for each in files if each.rows), key=lambda each: each.size)
