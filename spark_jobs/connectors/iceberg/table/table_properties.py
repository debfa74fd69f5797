"""Properties of tables and what they may be. Driver only."""

from __future__ import annotations

from typing import Final

CODEC: Final = "write.parquet.compression-codec"
MERGE_ON_READ: Final = "merge-on-read"
STATEMENTS: Final = ("merge", "update", "delete")
# What a table may say of each kind of statement; the first is the default.
CHOICES: Final = {
    "mode": ("copy-on-write", MERGE_ON_READ),
    "isolation-level": ("serializable", "snapshot"),
}
