"""Options of Paimon's tables that say how files are to be read: they cannot change any more.

As ``SchemaManager`` of Paimon's Java has it; the number of buckets, too, which its own engines only
change together with all files.
"""

from __future__ import annotations

from typing import Final

# Of any table.
NEVER: Final = frozenset({"type", "primary-key", "partition", "path"})
# Once a table has a snapshot: ``IMMUTABLE_OPTIONS`` of Paimon's ``CoreOptions``, and others.
WITH_SNAPSHOTS: Final = frozenset(
    {
        *("bucket", "bucket-key", "bucket-function.type", "merge-engine", "rowkind.field"),
        *("data-file.path-directory", "sequence.field", "sequence.snapshot-ordering"),
        *("aggregation.remove-record-on-delete", "partial-update.remove-record-on-delete"),
        *("partial-update.remove-record-on-sequence-group", "primary-key.nullable"),
        *("dynamic-bucket.initial-buckets", "force-lookup", "row-tracking.enabled"),
        *("data-evolution.enabled", "index-file-in-data-file-dir", "pk-clustering-override"),
        # By them, readers find the folders of partitions.
        *("partition.default-name", "partition.legacy-name"),
        *("blob-field", "video-frame-field", "blob-descriptor-field", "blob-view-field"),
    }
)
# What a catalog's server says of a table among its options, besides its place.
OF_SERVER: Final = frozenset({"owner", "createdAt", "createdBy", "updatedAt", "updatedBy", "path"})
# It may change only if this other option is "true".
VECTORS: Final = "deletion-vectors.enabled"
VECTORS_MODIFIABLE: Final = "deletion-vectors.modifiable"
