"""The benchmark's data: a table of 10 M rows x 16 columns like TPC-H's lineitem, and its changes.

Everything follows from row numbers by duckdb's ``hash``, so each run measures the same work.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

FILES = 20

_TARGET = """
SELECT i AS id,
       ((hash(i) % 2000000)::BIGINT)::INT AS partkey,
       ((hash(i + 1) % 100000)::BIGINT)::INT AS suppkey,
       (i % 7)::INT AS linenumber,
       ((hash(i + 2) % 50)::BIGINT)::DECIMAL(15, 2) AS quantity,
       ((hash(i + 3) % 10000000)::BIGINT / 100.0)::DECIMAL(15, 2) AS price,
       ((hash(i + 4) % 10)::BIGINT / 100.0)::DECIMAL(15, 2) AS discount,
       ((hash(i + 5) % 8)::BIGINT / 100.0)::DECIMAL(15, 2) AS tax,
       ['A', 'N', 'R'][1 + (hash(i + 6) % 3)::BIGINT] AS returnflag,
       ['O', 'F'][1 + (hash(i + 7) % 2)::BIGINT] AS linestatus,
       DATE '1992-01-01' + ((hash(i + 8) % 2500)::BIGINT)::INT AS shipdate,
       DATE '1992-01-01' + ((hash(i + 9) % 2500)::BIGINT)::INT AS commitdate,
       DATE '1992-01-01' + ((hash(i + 10) % 2500)::BIGINT)::INT AS receiptdate,
       ['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN']
           [1 + (hash(i + 11) % 4)::BIGINT] AS shipinstruct,
       ['TRUCK', 'MAIL', 'SHIP', 'AIR', 'RAIL'][1 + (hash(i + 12) % 5)::BIGINT] AS shipmode,
       'comment ' || md5(i::VARCHAR)[:20] AS comment
FROM ({ids}) t(i)
"""

# Five of six keys exist in the target, scattered over all of it; the others are new.
_CHANGES = """
SELECT id, any_value(price) AS price, any_value(comment) AS comment, any_value(del) AS del
FROM (SELECT CASE WHEN i % 6 = 5 THEN {rows} + i ELSE (i * 7919 * 31) % {rows} END AS id,
             (i % 1000)::DECIMAL(15, 2) AS price, 'upd ' || i AS comment, i % 10 = 0 AS del
      FROM range({changes}) t(i))
GROUP BY id ORDER BY id
"""

COLUMNS = (
    ("id", "BIGINT"),
    ("partkey", "INT"),
    ("suppkey", "INT"),
    ("linenumber", "INT"),
    ("quantity", "DECIMAL(15, 2)"),
    ("price", "DECIMAL(15, 2)"),
    ("discount", "DECIMAL(15, 2)"),
    ("tax", "DECIMAL(15, 2)"),
    ("returnflag", "STRING"),
    ("linestatus", "STRING"),
    ("shipdate", "DATE"),
    ("commitdate", "DATE"),
    ("receiptdate", "DATE"),
    ("shipinstruct", "STRING"),
    ("shipmode", "STRING"),
    ("comment", "STRING"),
)


def target_files(rows: int) -> Iterator[pa.Table]:
    """The target's rows, one Arrow table for each of its files."""
    for number in range(FILES):
        yield rows_between(number * rows // FILES, (number + 1) * rows // FILES)


def rows_between(low: int, high: int) -> pa.Table:
    """The rows with these ids, without the last one."""
    return duckdb.sql(rows_of(f"FROM range({low}, {high})")).to_arrow_table()


def rows_of(ids: str) -> str:
    """A query of duckdb for the rows whose ids a query of one column has."""
    return _TARGET.format(ids=ids)


def write_changes(path: Path, rows: int, changes: int) -> None:
    """The source: ``id``, ``price``, ``comment`` and ``del`` (boolean), as one parquet file."""
    query = _CHANGES.format(rows=rows, changes=changes)
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
