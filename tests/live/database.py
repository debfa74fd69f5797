"""What Airflow's database holds, whichever database it is."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import sqlalchemy

from tests.live.server import Server


def content(server: Server, *, without: Collection[str] = ()) -> bytes:
    """Every value of every table but ``without``."""
    engine = sqlalchemy.create_engine(server.variables["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    try:
        tables = sqlalchemy.MetaData()
        tables.reflect(engine)
        with engine.connect() as connection:
            return b"\n".join(
                _text(value)
                for table in tables.sorted_tables
                if table.name not in without
                for row in connection.execute(sqlalchemy.select(table))
                for value in row
            )
    finally:
        engine.dispose()


def _text(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False).encode()
    return str(value).encode()
