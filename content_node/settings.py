"""Settings of a content node."""

import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from winnow.domain.shard import DEFAULT_EF, EXACT_UP_TO
from winnow.inference.options import InferenceOptions
from winnow.journal.expiry import SKEW
from winnow.journal.opening import journal_url
from winnow.settings.common import ServiceSettings, cores
from winnow.settings.securing import PeerSettings
from winnow.settings.values import Count, ListenAddress, Seconds, Threads
from winnow.storage import absolute_url

_EVERY_INTERFACE = ("0.0.0.0", "[::]")  # noqa: S104 (recognised, not used)


_ONE_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
"""Begin of a URL that lacks a slash. It would be the path of a new directory."""


def _absolute(url: str) -> str:
    """Returns a URL unchanged, and a path as an absolute one: stubs of archived shards name it."""
    if _ONE_SLASH.match(url):
        raise ValueError("a URL has two slashes after its scheme, such as s3://bucket/archive")
    return absolute_url(url)


class NodeSettings(PeerSettings, ServiceSettings):
    """Serve shards of an index to front nodes.

    Example: winnow node --shards index --listen 127.0.0.1:9001

    The shards share the models, the threads and the limits of the node.
    """

    table: ClassVar[str] = "node"

    shard: list[Path] = Field(
        default_factory=list,
        description="Directory of a shard, written by `winnow index build`. Give it once for each "
        "shard.",
    )
    shards: Path | None = Field(
        None,
        description="Directory of an index. The node serves all shards in it.",
    )
    pull: str = Field(
        "",
        description="URL of a shard's snapshots, such as s3://bucket/index/shard-00000-of-00003. "
        "If the directory of --shard does not exist, the newest snapshot is restored to it. With "
        "several shards, give the URL of the index.",
    )
    assignment: str = Field(
        "",
        description="File or URL of the assignment of shards, such as "
        "s3://bucket/index/assignment.json. The node serves the shards that `winnow shards` "
        "assigns to it. Replaces --shard and --shards.",
    )
    indexes: str = Field(
        "",
        description="File or URL of the catalog of named indexes, such as "
        "s3://bucket/indexes.json, which `winnow indexes` changes. The node serves the shards of "
        "all indexes that the catalog assigns to it, besides those of the other options.",
    )
    name: str = Field(
        default_factory=socket.gethostname,
        description="Name of the node in the assignment; by default the name of the machine.",
    )
    data: Path | None = Field(
        None,
        description="Directory for the shards that are assigned to the node.",
    )
    address: str = Field(
        "",
        description="HOST:PORT at which other nodes reach this one to copy its shards. By default "
        "the address of --listen, or NAME:PORT if the node listens on all networks.",
    )
    listen: ListenAddress = Field(
        "127.0.0.1:9000", description="HOST:PORT to serve gRPC on; port 0 for any free one."
    )
    threads: Threads = Field(default_factory=cores, description="Threads that retrieve and read.")
    reader_threads: Threads = Field(
        default_factory=cores,
        description="Maximum number of threads that work on one request.",
    )
    reader_nice: int = Field(
        5,
        ge=0,
        le=19,
        description="Niceness of the threads that load and read: a higher value gives way to other "
        "processes.",
    )
    max_reads: Count = Field(
        1_000,
        description="Maximum number of passages that wait to be read. Further calls are refused.",
    )
    max_tokens: int = Field(
        0,
        ge=0,
        le=512,
        description="Maximum input length of the reader, in tokens; 0 for the length in the "
        "bundle. Split readers, such as the default bundle's, refuse shorter lengths.",
    )
    ef: int = Field(
        DEFAULT_EF,
        ge=0,
        le=10_000,
        description="Search width of the graph: a higher value finds more of the nearest passages "
        "and takes longer. 0 stands for 128 in shards with token vectors, and 256 in others.",
    )
    feed: bool = Field(
        False,
        description="Accept writes, and store them in the directories of the shards. Only one node "
        "may use a directory.",
    )
    journal: Annotated[str, AfterValidator(journal_url)] = Field(
        "",
        description="Journal that all replicas of a shard follow, such as nats://HOST:4222; empty "
        "for shards without replicas. Writes are published there first. Needs --feed.",
    )
    journal_skew: float = Field(
        SKEW,
        ge=0,
        le=60,
        description="Maximum difference between the clocks of nodes and journal servers, in "
        "seconds. Writes need longer deadlines than this. A write that reaches the journal after "
        "its deadline is skipped.",
    )
    archive_url: Annotated[str, AfterValidator(_absolute)] = Field(
        "",
        description="Directory or URL of an archive, such as s3://bucket/archive. Shards with "
        "tenants that get no calls are moved there, and restored by their first call. Needs "
        "--feed.",
    )
    archive_after: Seconds = Field(
        86_400.0,
        description="Seconds without a question, a write or another call after which a shard is "
        "archived.",
    )
    archive_restores: Count = Field(
        4,
        description="Maximum number of archived shards that are restored at the same time. The "
        "calls of others wait in turn, until their deadlines.",
    )
    merge_after: Count = Field(
        2_000,
        description="Minimum number of unmerged writes that start a merge into the files of a "
        "shard. A large shard waits until they are a tenth of its passages. After ten minutes "
        "without writes, fewer are merged.",
    )
    max_unmerged: Count = Field(
        200_000,
        description="Maximum number of unmerged writes of the node, which are kept in memory. "
        "Further writes are refused. Each shard gets an equal part of the limit, and is merged at "
        "half of its part.",
    )
    exact: bool = Field(
        False,
        description="Compare the question with every passage instead of searching the graph.",
    )
    exact_up_to: int = Field(
        EXACT_UP_TO,
        ge=0,
        description="Shards with at most this number of passages are searched without the graph.",
    )

    @field_validator("shard", mode="before")
    @classmethod
    def _accept_one_shard(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | Path) else value

    @model_validator(mode="after")
    def _validate_journal(self) -> Self:
        if self.journal and not self.feed:
            raise ValueError("--journal needs --feed, which accepts the writes of the journal")
        return self

    @model_validator(mode="after")
    def _validate_archive(self) -> Self:
        if not self.archive_url:
            for name in ("archive_after", "archive_restores"):
                if name in self.model_fields_set:
                    flag = name.replace("_", "-")
                    raise ValueError(f"--{flag} needs --archive-url, the place of the archive")
            return self
        if not self.feed:
            raise ValueError(
                "--archive-url needs --feed, or --feed-listen of `winnow up` and `winnow "
                "standalone`: only then no other node uses the shards"
            )
        return self

    @model_validator(mode="after")
    def _validate_assignment(self) -> Self:
        if self.indexes and self.data is None:
            raise ValueError("--indexes needs --data, the directory of the shards")
        if (self.assignment or self.indexes) and not self.name:
            raise ValueError("--name is empty")
        if not self.assignment:
            if self.indexes:
                return self
            given = [f"--{name}" for name in ("data", "address") if getattr(self, name)]
            if given:
                raise ValueError(f"{' and '.join(given)}: only with --assignment or --indexes")
            return self
        if self.shard or self.shards is not None:
            raise ValueError("--assignment names the shards: leave --shard and --shards out")
        if self.data is None:
            raise ValueError("--assignment needs --data, the directory of the shards")
        return self

    @property
    def peer_address(self) -> str:
        """HOST:PORT at which other nodes reach this one."""
        if self.address:
            return self.address
        host, _, port = self.listen.rpartition(":")
        return f"{self.name}:{port}" if host in _EVERY_INTERFACE else self.listen

    @property
    def inference(self) -> InferenceOptions:
        """Options of the reader, which runs in every thread at the same time."""
        return replace(super().inference, runs=self.threads)
