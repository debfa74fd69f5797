"""What a catalog's warehouse and options say about HDFS, read alike on both sides.

Options are those of Hadoop's own files (``dfs.…``, ``hadoop.…``), also with Paimon's prefix
``hdfs.config.`` before them. What they do not say is looked up in the files of ``HADOOP_CONF_DIR``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SCHEME: Final = "hdfs"
PACKAGE: Final = "hdfs-native>=0.14.7,<0.15"
_PREFIX: Final = "hdfs.config."
_HADOOP: Final = ("dfs.", "hadoop.")
# Of a NameNode that does not answer the client would wait for three minutes.
_ATTEMPTS: Final = ("dfs.client.failover.max.attempts", "3")


@dataclass(frozen=True, slots=True)
class HdfsOptions:
    """``authority``: the NameNode, ``host:port``, or the name of a nameservice; may be empty.

    ``config`` are names and values of Hadoop's options.
    """

    authority: str
    config: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, location: str, options: Mapping[str, str]) -> HdfsOptions:
        """How ``location`` (``hdfs://…``) is reached."""
        authority = location.partition("://")[2].partition("/")[0]
        # Another NameNode of a nameservice may take over: there patience is worth it.
        config = dict([_ATTEMPTS]) if ":" in authority else {}
        config |= {name: text for name, text in options.items() if name.startswith(_HADOOP)}
        for name, text in options.items():
            if name.startswith(_PREFIX):
                config[name.removeprefix(_PREFIX)] = text
        return cls(authority, tuple(sorted(config.items())))
