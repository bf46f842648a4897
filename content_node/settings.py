"""Settings of a content node."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from content_node.shard.shard import EXACT_UP_TO
from winnow.inference.runtime import InferenceOptions
from winnow.settings.common import ServiceSettings, cores
from winnow.settings.listening import ListenAddress


class NodeSettings(ServiceSettings):
    """Serve one shard of an index to front nodes.

    Example: winnow node --shard index/shard-00000-of-00003 --listen 127.0.0.1:9001
    """

    table: ClassVar[str] = "node"

    shard: Path = Field(description="Directory of the shard, written by `winnow index build`.")
    listen: ListenAddress = Field(
        "127.0.0.1:9000", description="HOST:PORT to serve gRPC on; port 0 for any free one."
    )
    threads: int = Field(
        default_factory=cores, ge=1, le=1024, description="Threads that retrieve and read."
    )
    reader_threads: int = Field(
        default_factory=cores, ge=1, le=1024, description="Most threads that one request may use."
    )
    reader_nice: int = Field(
        5,
        ge=0,
        le=19,
        description="Niceness of loading and reading: higher gives way to other work.",
    )
    max_reads: int = Field(
        1_000,
        ge=1,
        description="Most passages that may wait to be read; calls beyond that are refused.",
    )
    max_tokens: int = Field(
        0, ge=0, le=512, description="Longest input of the reader, in tokens; 0 for the bundle's."
    )
    ef: int = Field(
        128,
        ge=16,
        le=10_000,
        description="Breadth of the graph search: higher finds more of the nearest, and takes "
        "longer. A question that asks for more passages is searched as broadly as that.",
    )
    exact: bool = Field(
        False, description="Compare with every passage instead of searching the graph."
    )
    exact_up_to: int = Field(
        EXACT_UP_TO,
        ge=0,
        description="Largest shard, in passages, that is always searched without its graph.",
    )

    @property
    def inference(self) -> InferenceOptions:
        """How the reader is run: by every thread at once."""
        return replace(super().inference, runs=self.threads)
