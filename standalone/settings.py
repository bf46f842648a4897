"""Settings of `winnow standalone`: a front node with all shards of an index in its process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, field_validator

from winnow.content_node.settings import NodeSettings
from winnow.settings.common import cores
from winnow.stateless.settings import FrontSettings

_OF_SERVERS = ("tls_cert", "tls_key", "tls_client_ca")
_OF_FRONTS = (*_OF_SERVERS, "keys", "indexes", "http_feed")
"""Settings of a front that do not concern a program which opens an index without a server."""
_OF_NODES = (*_OF_SERVERS, "pull", "assignment", "indexes", "data", "address")
"""Settings of a content node that do not concern shards in the process of the front.

For example, all shards would pull the one shard at the URL of `pull`.
"""
_OF_WRITES = ("journal", "journal_skew", "archive_url", "archive_after", "archive_restores")
"""Settings of a content node that do not concern shards which take no writes."""


class StandaloneSettings(FrontSettings):
    """Answer questions over an index, in one process without content nodes.

    Example: winnow standalone --index index --listen 127.0.0.1:8080

    The options below are those of a front node: their variables begin with WINNOW_FRONT_, and their
    table in the TOML file is 'front'. The shards read the settings of a content node, from the
    variables WINNOW_NODE_… and the table 'node'. --shards is ignored. --feed-listen lets the shards
    take writes.
    """

    table: ClassVar[str] = "front"

    reader_threads: int = Field(
        default_factory=cores,
        ge=0,
        le=1024,
        description="Whether to read texts which callers send (ReadService, /v1/read, /v1/rerank, "
        "/v1/highlight): 0 disables these calls. The reader threads of the shards read the texts.",
    )
    index: Path = Field(description="Directory of the index, written by `winnow index build`.")

    @classmethod
    def embedded(cls, flags: Mapping[str, Any], config: Path | None) -> Self:
        """Loads the settings of a program that opens an index, and serves it on no port.

        Variables that only servers need may be set in the same shell. They are ignored, and so are
        further encoder groups if `flags` have no heads. Raises SettingsError as `load` does.
        """
        ignored = _OF_FRONTS if flags.get("heads") else (*_OF_FRONTS, "rings")
        return cls.load(flags, config, ignored=ignored)

    @field_validator("indexes")
    @classmethod
    def _refuse_catalog(cls, indexes: str) -> str:
        if indexes:
            raise ValueError("a catalog needs content nodes: use `winnow node` and `winnow front`")
        return indexes

    @property
    def serves_answers(self) -> bool:
        """Always true, because there is always an index."""
        return True

    def node(self, shard: Path, *, feed: bool | None) -> NodeSettings:
        """Loads the content node settings that all shards use.

        Args:
            shard: directory of any of the shards.
            feed: whether the shards take writes; None reads it from the variables and the file. If
                false, the settings of the journal and the archive are ignored.

        Raises:
            SettingsError: a variable or the file has a wrong value for content nodes.

        """
        flags = {"shard": shard, "bundle": self.bundle, "feed": feed}
        index = {"shards": shard.parent}  # no archive may be in it
        ignored = _OF_NODES if feed is not False else (*_OF_NODES, *_OF_WRITES)
        return NodeSettings.load(flags | index, self.file, ignored=ignored)
