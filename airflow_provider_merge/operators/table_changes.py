"""Changes of a table's definition, as plain dicts: the JSON form of the contract's changes.

::

    changes=[
        add_column("amount", "DECIMAL(10, 2)", after="customer"),
        rename_column("address.zip", "postcode"),
        set_properties({"write.delete.mode": "merge-on-read"}),
    ]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TableChange = dict[str, Any]


def add_column(
    column: str,
    type: str,  # noqa: A002  # as the contract calls it
    *,
    nullable: bool = True,
    comment: str | None = None,
    default: str | None = None,
    first: bool = False,
    after: str | None = None,
    if_not_exists: bool = False,
) -> TableChange:
    """ADD COLUMN; a nested field as ``address.zip``. ``default`` is a literal: ``"0"``, ``"'x'"``.

    ``if_not_exists``: an equal column is left alone.
    """
    return {
        "kind": "add_column",
        "column": column,
        "type": type,
        "nullable": nullable,
        "comment": comment,
        "default": default,
        "first": first,
        "after": after,
        "if_not_exists": if_not_exists,
    }


def drop_column(column: str, *, if_exists: bool = False) -> TableChange:
    """DROP COLUMN"""
    return {"kind": "drop_column", "column": column, "if_exists": if_exists}


def rename_column(column: str, new_name: str, *, if_exists: bool = False) -> TableChange:
    """RENAME COLUMN; a nested field keeps its place: ``("address.zip", "postcode")``."""
    return {
        "kind": "rename_column",
        "column": column,
        "new_name": new_name,
        "if_exists": if_exists,
    }


def widen_column(
    column: str,
    type: str,  # noqa: A002  # as the contract calls it
) -> TableChange:
    """ALTER COLUMN TYPE, to a type that holds all values of the present one."""
    return {"kind": "widen_column", "column": column, "type": type}


def comment_column(column: str, comment: str) -> TableChange:
    """ALTER COLUMN COMMENT; an empty comment is none."""
    return {"kind": "comment_column", "column": column, "comment": comment}


def drop_not_null(column: str) -> TableChange:
    """ALTER COLUMN DROP NOT NULL"""
    return {"kind": "set_nullable", "column": column, "nullable": True}


def move_column(column: str, *, first: bool = False, after: str | None = None) -> TableChange:
    """ALTER COLUMN FIRST, or AFTER another one."""
    return {"kind": "move_column", "column": column, "first": first, "after": after}


def set_default(column: str, default: str | None) -> TableChange:
    """ALTER COLUMN SET DEFAULT a literal; None: DROP DEFAULT."""
    return {"kind": "set_default", "column": column, "default": default}


def comment_table(comment: str) -> TableChange:
    """COMMENT ON TABLE; an empty comment is none."""
    return {"kind": "comment_table", "comment": comment}


def set_properties(properties: Mapping[str, str]) -> TableChange:
    """SET TBLPROPERTIES; where the format has it, ``{"format-version": "3"}`` is an upgrade."""
    return {"kind": "set_properties", "properties": dict(properties)}


def unset_properties(*names: str) -> TableChange:
    """UNSET TBLPROPERTIES; one that the table does not have is no error."""
    return {"kind": "unset_properties", "names": list(names)}


def add_partition_field(
    field: str, *, name: str | None = None, if_not_exists: bool = False
) -> TableChange:
    """ADD PARTITION FIELD: a column, or a transform: ``day(ts)``, ``bucket(16, id)``."""
    return {
        "kind": "add_partition_field",
        "field": field,
        "name": name,
        "if_not_exists": if_not_exists,
    }


def drop_partition_field(field: str, *, if_exists: bool = False) -> TableChange:
    """DROP PARTITION FIELD, by its name or its transform."""
    return {"kind": "drop_partition_field", "field": field, "if_exists": if_exists}


def replace_partition_field(field: str, by: str, *, name: str | None = None) -> TableChange:
    """REPLACE PARTITION FIELD, by its name or its transform."""
    return {"kind": "replace_partition_field", "field": field, "by": by, "name": name}


def write_ordered_by(*order: str, distribution: str | None = None) -> TableChange:
    """WRITE ORDERED BY: ``"ts"``, ``"bucket(4, id) DESC NULLS LAST"``; nothing: UNORDERED.

    ``distribution`` (``none``, ``hash``, ``range``) sets ``write.distribution-mode``, too.
    """
    return {"kind": "set_write_order", "order": list(order), "distribution": distribution}


def set_identifier_fields(*columns: str) -> TableChange:
    """SET IDENTIFIER FIELDS: in place of all that there are."""
    return {"kind": "set_identifier_fields", "columns": list(columns)}


def drop_identifier_fields(*columns: str, if_exists: bool = False) -> TableChange:
    """DROP IDENTIFIER FIELDS"""
    return {"kind": "drop_identifier_fields", "columns": list(columns), "if_exists": if_exists}
