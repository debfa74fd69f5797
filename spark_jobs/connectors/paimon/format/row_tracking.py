"""Row ids and sequence numbers of a table that tracks rows.

A row keeps its id until it is deleted; its sequence number is the id of the snapshot that changed
it last. In a file of new rows, the manifest has the id of the first row, which the commit assigns,
and the number of all rows. A file of older rows stores both as columns; a number that is NULL there
is the file's, so that a writer need not know its snapshot. After ``SpecialFields`` and
``RowTrackingCommitUtils`` of Paimon. Runs on executors, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from spark_jobs.connectors.paimon.format.types import with_field_id
from spark_jobs.datafiles.field_mapping import FieldMapping, Fill
from spark_jobs.datafiles.statistics import ColumnStatistics
from spark_jobs.datafiles.tracked_rows import TrackedColumns

ROW_ID: Final = "_ROW_ID"
SEQUENCE_NUMBER: Final = "_SEQUENCE_NUMBER"

_FIELD_IDS: Final = {ROW_ID: 2**31 - 6, SEQUENCE_NUMBER: 2**31 - 2}


class RowIdentity(NamedTuple):
    """How a file tells the ids and sequence numbers of its rows.

    ``first_row_id`` is the first row's, if the manifest has it; ``sequence_number`` is that of rows
    for which none is stored. ``stored`` are the names of the two columns that the file has.
    """

    first_row_id: int | None
    sequence_number: int
    stored: tuple[str, ...]

    @classmethod
    def of(cls, file: Any) -> RowIdentity:
        """What a manifest says about a data file."""
        names = file.write_cols or ()
        stored = tuple(name for name in (ROW_ID, SEQUENCE_NUMBER) if name in names)
        return cls(file.first_row_id, file.max_sequence_number, stored)

    @property
    def is_known(self) -> bool:
        """Whether rows have ids at all."""
        return self.first_row_id is not None or ROW_ID in self.stored

    @property
    def id_mapping(self) -> FieldMapping:
        """How the ids are found in the file."""
        fill = None if self.first_row_id is None else Fill(self.first_row_id, 1)
        return self._mapping(ROW_ID, fill)

    @property
    def number_mapping(self) -> FieldMapping:
        """How the sequence numbers are found in the file."""
        return self._mapping(SEQUENCE_NUMBER, Fill(self.sequence_number, 0))

    def _mapping(self, name: str, fill: Fill | None) -> FieldMapping:
        field = _field(name)
        return FieldMapping(field, field if name in self.stored else None, fill=fill)


def file_mappings(
    mappings: Mapping[int, tuple[FieldMapping, ...]],
    columns: pa.Schema,
    schema_id: int | None,
    identity: RowIdentity | None,
) -> tuple[FieldMapping, ...] | None:
    """How the table's ``columns``, and ids and numbers if it tracks rows, are found in a file.

    ``mappings`` are of the former, by id of an older schema; ``schema_id`` None: the file has them.
    None: the file has all that is asked for.
    """
    own = None if schema_id is None else mappings[schema_id]
    if identity is None:
        return own
    if own is None:
        own = tuple(FieldMapping(each, each) for each in columns)
    return (*own, identity.id_mapping, identity.number_mapping)


def _field(name: str) -> pa.Field:
    """The column, with Paimon's field id."""
    return with_field_id(pa.field(name, pa.int64()), _FIELD_IDS[name], "BIGINT")


COLUMNS: Final = TrackedColumns(_field(ROW_ID), _field(SEQUENCE_NUMBER))


def stores_ids(names: Sequence[str] | Mapping[str, Any] | None) -> bool:
    """Whether files of these columns store row ids; None: columns of the table alone."""
    return names is not None and ROW_ID in names


def stored_numbers(statistics: Mapping[str, ColumnStatistics]) -> tuple[int, int]:
    """The first and last sequence number of a file that stores them; 0: that of its snapshot."""
    numbers = statistics[SEQUENCE_NUMBER]
    if numbers.minimum is None:
        return 0, 0
    return numbers.minimum, 0 if numbers.null_count else numbers.maximum
