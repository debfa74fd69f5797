"""The columns of files of tables with a primary key, as Paimon's Java writers lay them out.

Follows ``KeyValue.schema`` and ``SpecialFields``: the key under other names, the record's sequence
number and kind, then all columns of the table. Runs on executors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

KEY_PREFIX: Final = "_KEY_"
SEQUENCE_NUMBER: Final = "_SEQUENCE_NUMBER"
VALUE_KIND: Final = "_VALUE_KIND"
# Not in files: where the newest record of a row is, among the files of its section.
POSITION: Final = "_POSITION"

# The values of VALUE_KIND.
INSERT_KIND, UPDATE_BEFORE_KIND, UPDATE_AFTER_KIND, DELETE_KIND = range(4)

_FIELD_ID: Final = b"PARQUET:field_id"
_KEY_ID_START: Final = 2147483647 // 2
_SEQUENCE_NUMBER_ID: Final = 2147483646
_VALUE_KIND_ID: Final = 2147483645


def file_schema(columns: pa.Schema, key: Sequence[str], *, thin: bool) -> pa.Schema:
    """The schema of a file of a table with these ``columns``, which have Paimon's field ids.

    ``thin``: the key's columns are only there under their own names (``data-file.thin-mode``).
    """
    return pa.schema(
        [
            *(_key_field(columns.field(name)) for name in key if not thin),
            _numbered(pa.field(SEQUENCE_NUMBER, pa.int64(), nullable=False), _SEQUENCE_NUMBER_ID),
            _numbered(pa.field(VALUE_KIND, pa.int8(), nullable=False), _VALUE_KIND_ID),
            *columns,
        ]
    )


def _key_field(field: pa.Field) -> pa.Field:
    named = field.with_name(f"{KEY_PREFIX}{field.name}").with_nullable(nullable=False)
    return _numbered(named, _KEY_ID_START + int(field.metadata[_FIELD_ID]))


def _numbered(field: pa.Field, field_id: int) -> pa.Field:
    return field.with_metadata({_FIELD_ID: str(field_id)})
