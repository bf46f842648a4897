"""Settings of a content node."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from winnow.content_node.shard.stored_segment import EXACT_UP_TO
from winnow.inference.runtime import InferenceOptions
from winnow.journal.expiry import SKEW
from winnow.journal.opening import journal_url
from winnow.settings.common import ServiceSettings, cores
from winnow.settings.values import Count, ListenAddress, Threads


class NodeSettings(ServiceSettings):
    """Serve one shard of an index to front nodes.

    Example: winnow node --shard index/shard-00000-of-00003 --listen 127.0.0.1:9001
    """

    table: ClassVar[str] = "node"

    shard: Path = Field(description="Directory of the shard, written by `winnow index build`.")
    pull: str = Field(
        "",
        description="URL of a shard in a place of snapshots, such as "
        "s3://bucket/index/shard-00000-of-00003; restored to --shard unless a shard lies there.",
    )
    listen: ListenAddress = Field(
        "127.0.0.1:9000", description="HOST:PORT to serve gRPC on; port 0 for any free one."
    )
    threads: Threads = Field(default_factory=cores, description="Threads that retrieve and read.")
    reader_threads: Threads = Field(
        default_factory=cores, description="Most threads that one request may use."
    )
    reader_nice: int = Field(
        5,
        ge=0,
        le=19,
        description="Niceness of loading and reading: a higher value gives way to other processes.",
    )
    max_reads: Count = Field(
        1_000, description="Most passages waiting to be read; further calls are refused."
    )
    max_tokens: int = Field(
        0,
        ge=0,
        le=512,
        description="Longest input of the reader, in tokens; 0 for the bundle's. Not for a "
        "split reader, as the default bundle's.",
    )
    ef: int = Field(
        256,
        ge=16,
        le=10_000,
        description="Breadth of the graph search: a higher value finds more and takes longer.",
    )
    feed: bool = Field(
        False,
        description="Take writes, and store them in the shard's directory. One node per directory.",
    )
    journal: Annotated[str, AfterValidator(journal_url)] = Field(
        "",
        description="Journal that all replicas of the shard follow, such as nats://HOST:4222; "
        "writes go there first. Needs --feed. Empty for a shard without replicas.",
    )
    journal_skew: float = Field(
        SKEW,
        ge=0,
        le=60,
        description="Seconds by which the clocks of the nodes and of the journal's servers may "
        "differ. A write needs more time than that; one that arrives too late is skipped.",
    )
    merge_after: Count = Field(
        2_000,
        description="Fewest writes that are merged into the shard's files at once; a large shard "
        "waits for a tenth of its passages, and one that nobody writes to for ten minutes.",
    )
    max_unmerged: Count = Field(
        200_000,
        description="Most writes held in memory until they are merged; further ones are refused. "
        "From half of it on the shard is merged, however large it is.",
    )
    exact: bool = Field(
        False, description="Compare every passage with the question instead of searching the graph."
    )
    exact_up_to: int = Field(
        EXACT_UP_TO,
        ge=0,
        description="Shards with at most this number of passages are searched without the graph.",
    )

    @model_validator(mode="after")
    def _is_fed(self) -> Self:
        if self.journal and not self.feed:
            raise ValueError("--journal needs --feed: what the journal brings is written")
        return self

    @property
    def inference(self) -> InferenceOptions:
        """How the reader is run: by every thread at once."""
        return replace(super().inference, runs=self.threads)
