"""The options of a Paimon catalog that say which kind it is and who asks. Read on both sides.

Those of the storage are in ``s3_options`` and ``hdfs_options``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

WAREHOUSE: Final = "warehouse"
METASTORE: Final = "metastore"
FILESYSTEM: Final = "filesystem"
REST: Final = "rest"
METASTORES: Final = (FILESYSTEM, REST)

# Of a rest metastore: its server's address, what that calls the warehouse where it is not the
# location, and the token.
URI: Final = "uri"
REST_WAREHOUSE: Final = "rest.warehouse"
TOKEN: Final = "token"  # noqa: S105 - the name of an option
TOKEN_PROVIDER: Final = "token.provider"  # noqa: S105 - the name of an option
# Paimon's Java and Python libraries call a bearer token so.
BEARER: Final = "bear"

# The server hands out a key of the storage for each table.
DATA_TOKENS: Final = "data-token.enabled"


def metastore_of(options: Mapping[str, str]) -> str:
    """The kind of catalog that the options name."""
    return options.get(METASTORE, FILESYSTEM)
