"""A new table that is like another one: what of that is taken over. Driver only."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from spark_jobs.connectors.paimon.library.table_schema import PaimonSchema
from spark_jobs.contract.new_table import CREATED_BY
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.formats.paimon.fixed_options import OF_SERVER

# Options that are about the one table.
_OWN: Final = OF_SERVER | {"branch", "data-file.external-paths", CREATED_BY}


def like_schema(schema: PaimonSchema, spec: CreateTableSpec) -> PaimonSchema:
    """The schema of a new table like that of ``schema``, with what ``spec`` gives in its place."""
    kept = {name: each for name, each in schema.options.items() if name not in _OWN}
    return replace(
        schema,
        options={**kept, **spec.table_options},
        comment=spec.comment or schema.comment,
    )
