"""What a statement reads: files, a table of the catalog, or a query over named sources.

The functions return plain dicts, because Airflow renders and serialises only those. You can also
write the dicts yourself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from airflow.sdk.definitions._internal.types import NOTSET, ArgNotSet

from airflow_provider_merge.exceptions import invalid


def file_source(
    path: str,
    format: str,  # noqa: A002  # as Spark calls it
    *,
    options: Mapping[str, Any] | ArgNotSet = NOTSET,
    schema: str | ArgNotSet = NOTSET,
    on_bad_rows: str | ArgNotSet = NOTSET,
    quarantine: str | ArgNotSet = NOTSET,
    max_bad_rows: float | str | ArgNotSet = NOTSET,
) -> dict[str, Any]:
    """Files: what ``spark.read.format(format).options(**options).load(path)`` reads, but strictly.

    ``schema`` is a Spark DDL string (``id BIGINT, name STRING``). ``on_bad_rows``: ``fail`` (the
    default), or ``quarantine``: unreadable records go to a file below the folder ``quarantine``.
    ``max_bad_rows`` limits their number (from 1) or share (below 1). Guide: docs/sources.md.
    """
    given = {
        "options": _plain(options),
        "schema": schema,
        "on_bad_rows": on_bad_rows,
        "quarantine": quarantine,
        "max_bad_rows": max_bad_rows,
    }
    return {
        "kind": "file",
        "path": path,
        "format": format,
        **{name: value for name, value in given.items() if not isinstance(value, ArgNotSet)},
    }


def new_files_source(
    path: str,
    format: str,  # noqa: A002  # as Spark calls it
    *,
    start: str | datetime,
    replaced: str | ArgNotSet = NOTSET,
    max_files: int | str | ArgNotSet = NOTSET,
    max_bytes: int | str | ArgNotSet = NOTSET,
    options: Mapping[str, Any] | ArgNotSet = NOTSET,
    schema: str | ArgNotSet = NOTSET,
    on_bad_rows: str | ArgNotSet = NOTSET,
    quarantine: str | ArgNotSet = NOTSET,
    max_bad_rows: float | str | ArgNotSet = NOTSET,
) -> dict[str, Any]:
    """Files that no commit of this task has applied, oldest first: each is applied exactly once.

    ``start``: what the first run does with files that are there already. ``all``: they are new;
    ``now``: they count as applied; a time with its zone: those from before count as applied.
    ``replaced``: a file that changed after it was applied is an error (``fail``, the default), or
    is read ``again``. ``max_files`` and ``max_bytes`` limit what a run takes. The others are those
    of ``file_source``. Guide: docs/sources.md.
    """
    files = file_source(
        path,
        format,
        options=options,
        schema=schema,
        on_bad_rows=on_bad_rows,
        quarantine=quarantine,
        max_bad_rows=max_bad_rows,
    )
    given = {"replaced": replaced, "max_files": max_files, "max_bytes": max_bytes}
    return {
        **files,
        "kind": "new_files",
        "start": start.isoformat() if isinstance(start, datetime) else start,
        **{name: value for name, value in given.items() if not isinstance(value, ArgNotSet)},
    }


def table_source(
    table: str,
    *,
    snapshot: int | str | ArgNotSet = NOTSET,
    tag: str | ArgNotSet = NOTSET,
    as_of: str | ArgNotSet = NOTSET,
    conn_id: str | ArgNotSet = NOTSET,
) -> dict[str, Any]:
    """A table (``db.table``), at its latest snapshot, or as it was.

    One of ``snapshot`` (an id), ``tag`` and ``as_of`` (a time, such as ``{{ data_interval_end }}``)
    names a former state, which is read with the columns that the table had then. ``conn_id``: the
    connection to its catalog, of this provider; default: that of the operator.
    """
    given = {"snapshot": snapshot, "tag": tag, "as_of": as_of, "conn_id": conn_id}
    return {
        "kind": "table",
        "table": table,
        **{name: value for name, value in given.items() if not isinstance(value, ArgNotSet)},
    }


def changes_source(
    table: str,
    *,
    start: str | int | Mapping[str, Any] | ArgNotSet = NOTSET,
    net: bool | str | ArgNotSet = NOTSET,
    on_gap: str | ArgNotSet = NOTSET,
    from_snapshot: int | str | ArgNotSet = NOTSET,
    to_snapshot: int | str | ArgNotSet = NOTSET,
    conn_id: str | ArgNotSet = NOTSET,
) -> dict[str, Any]:
    """The changes of a table (``db.table``) since the last commit of this task.

    Rows have ``_change_type`` (``insert``, ``update_before``, ``update_after``, ``delete``) and
    ``_snapshot_id`` besides. ``start``: what the first run reads: ``all`` rows as inserts, nothing
    (``now``), or what came behind a snapshot's id, ``{"tag": ...}`` or ``{"as_of": ...}``. ``net``:
    one row for each row or key that differs in the end. ``on_gap``: ``fail``, or ``full``: where
    the changes are not known any more, all rows are inserts. ``from_snapshot`` (the one before the
    first change; 0: before all) and ``to_snapshot`` take the place of ``start``: then what the task
    has done before does not matter. ``conn_id``: as in ``table_source``. Guide: docs/sources.md.
    """
    given = {
        "start": _plain(start),
        "net": net,
        "on_gap": on_gap,
        "from_snapshot": from_snapshot,
        "to_snapshot": to_snapshot,
        "conn_id": conn_id,
    }
    return {
        "kind": "changes",
        "table": table,
        **{name: value for name, value in given.items() if not isinstance(value, ArgNotSet)},
    }


def jdbc_source(
    conn_id: str,
    *,
    query: str | ArgNotSet = NOTSET,
    table: str | ArgNotSet = NOTSET,
    partition_by: str | ArgNotSet = NOTSET,
    partitions: int | str | ArgNotSet = NOTSET,
    fetch_size: int | str | ArgNotSet = NOTSET,
) -> dict[str, Any]:
    """A query on a database (PostgreSQL, MySQL, MariaDB), or a ``table`` of it, in its own SQL.

    ``conn_id``: a connection of Airflow of the type ``postgres``, ``mysql`` or ``jdbc``. With
    ``partition_by``, a column of whole numbers, ``partitions`` tasks read at once. ``fetch_size``:
    the rows that a task gets at once. Guide: docs/outside-sources.md.
    """
    given = {
        "query": query,
        "table": table,
        "partition_by": partition_by,
        "partitions": partitions,
        "fetch_size": fetch_size,
    }
    return {
        "kind": "jdbc",
        "conn_id": conn_id,
        **{name: value for name, value in given.items() if not isinstance(value, ArgNotSet)},
    }


def spark_source(
    format: str,  # noqa: A002  # as Spark calls it
    *,
    options: Mapping[str, Any] | ArgNotSet = NOTSET,
    schema: str | ArgNotSet = NOTSET,
    secret_options: Mapping[str, str] | ArgNotSet = NOTSET,
) -> dict[str, Any]:
    """What ``spark.read.format(format).options(**options).load()`` reads, evaluated once.

    ``secret_options``: option -> the connection of Airflow whose password is its value. Guide:
    docs/outside-sources.md.
    """
    given = {
        "options": _plain(options),
        "schema": schema,
        "secret_options": _plain(secret_options),
    }
    return {
        "kind": "spark",
        "format": format,
        **{name: value for name, value in given.items() if not isinstance(value, ArgNotSet)},
    }


def python_source(
    function: str, *, arguments: Mapping[str, Any] | ArgNotSet = NOTSET
) -> dict[str, Any]:
    """The DataFrame that a function ``(spark, context)`` returns: ``module:function``.

    The module is a file beside the DAG; its text travels with the job. ``arguments``, which may be
    templates, are in ``context.arguments``. Guide: docs/outside-sources.md.
    """
    if callable(function):
        problem = "is a function itself, which cannot travel to Spark"
        raise invalid("function", problem, "Write its name as text: 'module:function'.")
    given = {"arguments": _plain(arguments)}
    return {
        "kind": "python",
        "function": function,
        **{name: value for name, value in given.items() if not isinstance(value, ArgNotSet)},
    }


def sql_source(query: str, *, sources: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """A Spark SQL query; it uses the keys of ``sources`` like tables."""
    return {"kind": "sql", "query": query, "sources": _plain(sources)}


def deduplicate(
    source: Mapping[str, Any],
    *,
    by: Sequence[str],
    order_by: Sequence[str] | ArgNotSet = NOTSET,
    tie: str | ArgNotSet = NOTSET,
) -> dict[str, Any]:
    """One row for each key of a source: of several, the last.

    ``by`` are the columns of the key; the row with the greatest values in ``order_by`` is kept.
    ``tie``, of different rows with equal values there: ``fail`` (the default), or keep ``any``.
    NULL in any of these columns is an error. Guide: docs/sources.md.
    """
    given = {"order_by": order_by, "tie": tie}
    return {
        "kind": "deduplicated",
        "source": _plain(source),
        "by": by,
        **{name: value for name, value in given.items() if not isinstance(value, ArgNotSet)},
    }


def cdc_source(
    source: Mapping[str, Any],
    *,
    keys: Sequence[str],
    sequence: Sequence[str] | Mapping[str, str] | ArgNotSet = NOTSET,
    operation: str | ArgNotSet = NOTSET,
    values: Mapping[str, str | Sequence[str]] | ArgNotSet = NOTSET,
    format: str | ArgNotSet = NOTSET,  # noqa: A002  # as other sources call it
    late: str | ArgNotSet = NOTSET,
    deleted: str | ArgNotSet = NOTSET,
    unchanged: Sequence[str] | ArgNotSet = NOTSET,
    unavailable: str | ArgNotSet = NOTSET,
    without: Sequence[str] | ArgNotSet = NOTSET,
    schema: str | ArgNotSet = NOTSET,
    encodings: Mapping[str, str] | ArgNotSet = NOTSET,
    table: str | ArgNotSet = NOTSET,
) -> dict[str, Any]:
    """Change events of a table elsewhere; a MERGE applies them without ``on`` and ``when``.

    ``keys`` name a row, ``sequence`` orders the events of a key: columns, or target column -> place
    in the event. ``values``: what ``operation`` calls ``insert``, ``update``, ``delete``,
    ``before``, ``truncate`` and ``ignore``. ``format``: ``columns`` (the default), or documents of
    ``debezium``, ``maxwell`` or ``canal``, whose rows have the columns ``schema``; ``encodings``
    tells how their values are written, ``table`` whose events count. ``late``: the target keeps the
    sequence, and older events are left out (``ignore``), or it does not (``apply``). ``deleted``:
    the column that marks deleted rows. ``unchanged``: columns that may hold ``unavailable`` where
    an update left them as they were. ``without``: columns that are not those of a row. Guide:
    docs/sources.md.
    """
    given = {
        "sequence": _plain(sequence),
        "operation": operation,
        "values": _plain(values),
        "format": format,
        "late": late,
        "deleted": deleted,
        "unchanged": unchanged,
        "unavailable": unavailable,
        "without": without,
        "schema": schema,
        "encodings": _plain(encodings),
        "table": table,
    }
    return {
        "kind": "cdc",
        "source": _plain(source),
        "keys": keys,
        **{name: value for name, value in given.items() if not isinstance(value, ArgNotSet)},
    }


def _plain(value: Any) -> Any:
    # What is no mapping comes from another task, or is refused with its name later.
    return dict(value) if isinstance(value, Mapping) else value
