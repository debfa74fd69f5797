"""HDFS settings from a catalog's warehouse and options; operator and job read them the same way.

Options are those of Hadoop's configuration files (``dfs.…``, ``hadoop.…``), optionally with
Paimon's prefix ``hdfs.config.``. Other settings come from the files in ``HADOOP_CONF_DIR``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SCHEME: Final = "hdfs"
PACKAGE: Final = "hdfs-native>=0.14.7,<0.15"
_PREFIX: Final = "hdfs.config."
_HADOOP: Final = ("dfs.", "hadoop.")
# Without this, the client waits three minutes for a NameNode that does not answer.
_ATTEMPTS: Final = ("dfs.client.failover.max.attempts", "3")


@dataclass(frozen=True, slots=True)
class HdfsOptions:
    """How to reach HDFS.

    ``authority``: the NameNode (``host:port``) or the name of a nameservice; may be empty.
    ``config``: names and values of Hadoop options.
    """

    authority: str
    config: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, location: str, options: Mapping[str, str]) -> HdfsOptions:
        """The options for reaching ``location`` (``hdfs://…``)."""
        authority = location.partition("://")[2].partition("/")[0]
        # In a nameservice, another NameNode may take over, so waiting is worthwhile.
        config = dict([_ATTEMPTS]) if ":" in authority else {}
        config |= {name: text for name, text in options.items() if name.startswith(_HADOOP)}
        for name, text in options.items():
            if name.startswith(_PREFIX):
                config[name.removeprefix(_PREFIX)] = text
        return cls(authority, tuple(sorted(config.items())))
