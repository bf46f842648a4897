"""Settings of `winnow standalone`: a front node with all shards of an index in its process."""

from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from winnow.content_node.settings import NodeSettings
from winnow.settings.common import cores
from winnow.stateless.settings import FrontSettings


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
            feed: whether the shards take writes; None reads it from the variables and the file.

        Raises:
            SettingsError: a variable or the file has a wrong value for content nodes.

        """
        # otherwise all shards would pull the one shard at this URL
        flags = {"shard": shard, "bundle": self.bundle, "feed": feed, "pull": ""}
        index = {"shards": shard.parent}  # no archive may be in it
        return NodeSettings.load(flags | index, self.file)
