"""Options of a Paimon catalog for its kind and for authentication. Operator and job read them.

Storage options are in ``s3_options`` and ``hdfs_options``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

WAREHOUSE: Final = "warehouse"
METASTORE: Final = "metastore"
FILESYSTEM: Final = "filesystem"
REST: Final = "rest"
METASTORES: Final = (FILESYSTEM, REST)

# For a REST catalog: the server's address, the server's name of the warehouse if it differs from
# the location, and the token.
URI: Final = "uri"
REST_WAREHOUSE: Final = "rest.warehouse"
TOKEN: Final = "token"  # noqa: S105 - the name of an option
TOKEN_PROVIDER: Final = "token.provider"  # noqa: S105 - the name of an option
# The name of a bearer token in Paimon's Java and Python libraries.
BEARER: Final = "bear"

# The server issues storage credentials for each table.
DATA_TOKENS: Final = "data-token.enabled"


def metastore_of(options: Mapping[str, str]) -> str:
    """The kind of catalog that the options name."""
    return options.get(METASTORE, FILESYSTEM)
