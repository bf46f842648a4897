"""Settings of a front node."""

from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from winnow.domain.question import PartialResults, ReadScope, Retriever, WaitPolicy
from winnow.policy.load import LoadSettings
from winnow.replicas.policy.hedging import HedgeSettings
from winnow.replicas.policy.outliers import OutlierSettings
from winnow.replicas.policy.replicas import ReplicaSettings
from winnow.replicas.policy.retrying import RetrySettings
from winnow.replicas.routing import ReplicaPolicies
from winnow.resolving import resolver
from winnow.settings.common import ServiceSettings, cores
from winnow.settings.securing import PeerSettings
from winnow.settings.values import (
    Count,
    ListenAddress,
    OptionalListenAddress,
    Seconds,
    Share,
    Threads,
)
from winnow.stateless.cluster.polling import DiscoverySettings
from winnow.stateless.heads.encoder_group_setting import EncoderGroupSetting, join_split_groups
from winnow.stateless.heads.validation import MAX_TEXTS

_MOST_AHEAD = 4


class FrontSettings(PeerSettings, ServiceSettings):
    """Answer questions over the shards of an index, and predict labels and entities of texts.

    Example: winnow front --shards 127.0.0.1:9001 --shards 127.0.0.1:9002 --heads STORE

    Without --shards it predicts only, without --heads it answers only.
    """

    table: ClassVar[str] = "front"

    shards: list[str] = Field(
        default_factory=list,
        description="HOST:PORT of a content node, or dns:///HOST:PORT of a group of content nodes. "
        "Give it once for each, in any order.",
    )
    fronts: list[str] = Field(
        default_factory=list,
        description="HOST:PORT of another front node's --shards-listen, or dns:///HOST:PORT of a "
        "group: it is used as a content node with all its shards. Give it once for each.",
    )
    shards_listen: OptionalListenAddress = Field(
        "",
        description="HOST:PORT to serve the shards of this front node on, to other front nodes "
        "(--fronts); empty for none. Like the port of a content node, it demands no keys.",
    )
    listen: ListenAddress = Field(
        "127.0.0.1:8080", description="HOST:PORT to serve gRPC on; port 0 for any free one."
    )
    passages_to_read: int = Field(
        10, ge=1, le=100, description="Passages to read, unless the question says otherwise."
    )
    answers: int = Field(
        3, ge=1, le=100, description="Answers to return, unless the question says otherwise."
    )
    read_scope: ReadScope = Field(
        ReadScope.GLOBAL,
        description="Which passages to read, unless the question says otherwise: the best of the "
        "whole index (global), or the best of each shard (per-shard).",
    )
    retriever: Retriever = Field(
        Retriever.HYBRID,
        description="How to find passages, unless the question says otherwise: by meaning (dense), "
        "by words (sparse), or by both (hybrid).",
    )
    candidates: int = Field(
        100,
        ge=1,
        le=1_000,
        description="Nearest passages that hybrid retrieval ranks; at most --ef of the content "
        "nodes.",
    )
    word_candidates: int = Field(
        100,
        ge=0,
        le=1_000,
        description="Best passages by words that hybrid retrieval ranks, too, however far they are "
        "by meaning; 0 for none. Sparse retrieval ranks at least --candidates.",
    )
    max_loss: float = Field(
        0.3,
        ge=0,
        le=100,
        description="Accuracy budget for early stopping, in points of exact match (0 to 100), "
        "unless the question says otherwise. 0 disables it. Early stopping needs the global scope, "
        "hybrid retrieval, and a bundle with a rule for the budget.",
    )
    read_ahead: int = Field(
        # content nodes on one machine with the front share its cores
        default_factory=lambda: min(cores(), _MOST_AHEAD),
        ge=0,
        le=100,
        description="Most passages of a question to read at once where reading may stop early. "
        "Uses idle cores: answers come sooner and stay the same. 0 never reads ahead.",
    )
    encoder_threads: Threads = Field(
        default_factory=cores,
        description="Threads that encode questions and texts, in each encoder group.",
    )
    cache_mb: int = Field(
        64,
        ge=0,
        le=1 << 20,
        description="Memory for encoded questions, in MiB; 0 keeps none. One takes about 2 KB, and "
        "12 KB where heads are served.",
    )
    answer_cache_mb: int = Field(
        16,
        ge=0,
        le=1 << 20,
        description="Memory for answers that are given again if the same question is asked of an "
        "unchanged index, in MiB; about 6 KB each. 0 reads passages for every question.",
    )
    trace_share: Share = Field(
        1.0,
        description="Share, 0 to 1, of the calls without a trace context to trace. A call with a "
        "trace context is traced if its caller sampled it.",
    )
    max_in_flight: Count = Field(
        64, description="Most questions at the same time; more are refused with RESOURCE_EXHAUSTED."
    )
    max_reads: Count = Field(
        2_000, description="Most passages waiting to be read, of all questions together."
    )
    brown_out_floor: float = Field(
        0.3,
        gt=0,
        le=1,
        description="Under load, fewer passages are read: at least this share. A question without "
        "time for that is refused. 1 never reads fewer.",
    )
    merge_reserve: float = Field(
        0.02, ge=0, description="Seconds before the deadline to stop waiting for shards, and merge."
    )
    retrieve_share: float = Field(
        0.4,
        gt=0,
        lt=1,
        description="Share of the remaining time that retrieval may wait for a shard.",
    )
    min_coverage: Share = Field(
        1.0,
        description="Share of the shards to wait for until the deadline, unless the question says "
        "otherwise. After that, the others get a part of the remaining time.",
    )
    min_wait_factor: Share = Field(
        0.0, description="Share of the remaining time to wait for the last shard."
    )
    max_wait_factor: Share = Field(
        1.0,
        description="Share of the remaining time to wait when --min-coverage has just been "
        "reached.",
    )
    partial_results: PartialResults = Field(
        PartialResults.ALLOW,
        description="Allow or forbid answers from a part of the index, unless the question says "
        "otherwise.",
    )
    resolve_every: Seconds = Field(
        5.0, description="Seconds between two look-ups of a dns:/// target."
    )
    poll_every: Seconds = Field(
        0.5, description="Seconds between two health checks of a content node."
    )
    poll_idle: Seconds = Field(
        5.0,
        description="Seconds between two health checks of a content node while no questions come.",
    )
    poll_timeout: Seconds = Field(
        1.0,
        description="Seconds that a health check may take; a content node that misses two is left "
        "out.",
    )
    form_timeout: float = Field(
        30.0, ge=0, description="Seconds to wait for all shards before serving a part of them."
    )
    retries: int = Field(
        1, ge=0, le=3, description="Times to try a failed call again, on another replica."
    )
    hedge_budget: Share = Field(
        0.05,
        description="Share of all calls that may be repeated on a second replica because they are "
        "late; 0 for none.",
    )
    hedge_quantile: float = Field(
        0.95,
        gt=0,
        lt=1,
        description="A call is late if it is slower than this share of the recent calls.",
    )
    eject_after: Count = Field(
        3, description="Failures in a row before a replica is left out for a while."
    )
    eject_latency_factor: float = Field(
        5.0,
        gt=1,
        description="A replica that is this many times slower than the others is left out for a "
        "while.",
    )

    feed_listen: OptionalListenAddress = Field(
        "",
        description="HOST:PORT to take passages and deletions on, while questions are answered; "
        "empty to take none. Any caller who reaches it can change the index. The content "
        "nodes need --feed.",
    )
    feed_threads: Threads = Field(
        default_factory=cores, description="Threads that encode fed passages."
    )
    feed_nice: int = Field(
        # Python's lock is shared with what answers: a thread that hardly ever runs keeps it long
        10,
        ge=0,
        le=19,
        description="Niceness of encoding fed passages: a higher value gives way to questions.",
    )
    feed_in_hand: int = Field(
        1_000,
        ge=100,
        description="Most fed passages being encoded and stored at the same time; more are refused "
        "with RESOURCE_EXHAUSTED. A passage of more than 2000 characters counts as several.",
    )
    feed_deadline: float = Field(
        30.0,
        gt=0,
        le=3_600,
        description="Seconds that a call that feeds may take if its caller sets no deadline, and "
        "at most for each message of a stream.",
    )

    http_listen: OptionalListenAddress = Field(
        "", description="HOST:PORT to serve HTTP on, beside gRPC; empty to serve none."
    )
    http_hosts: list[str] = Field(
        default_factory=list,
        description="A name by which callers may call the HTTP server, such as qa.example.org. "
        "Give it once for each. IP addresses and localhost are always allowed; other names are "
        "refused with 421. Only with --keys, and with none given here, any name is allowed, unless "
        "the server listens on 127.0.0.1.",
    )
    http_pages: bool = Field(
        True,
        description="Serve pages for people over HTTP: / to ask and to see the cluster, and /docs; "
        "or calls only.",
    )
    http_feed: bool = Field(
        False,
        description="Take passages and deletions over HTTP, too. Any caller who reaches it can "
        "change the index. Needs --feed-listen.",
    )
    http_connections: int = Field(
        512,
        ge=1,
        le=65_536,
        description="Most HTTP connections that are open at the same time; of more, the one that "
        "was silent for longest is closed.",
    )

    heads: str = Field(
        "",
        description="Store of heads to predict with: a directory, or a URL such as "
        "s3://BUCKET/HEADS; empty for none.",
    )
    rings: list[str] = Field(
        default_factory=list,
        description="A further encoder group, NAME=BUNDLE,STORE: another encoder with its own "
        "heads. Repeat the flag for each group; leave out STORE with --head-servers. The default "
        "group is that of --bundle and --heads, and has the bundle's name.",
    )
    heads_budget_mb: Count = Field(
        512,
        description="Megabytes that the heads in memory may take, in each encoder group. The "
        "least recently used leave.",
    )
    head_threads: Threads = Field(
        default_factory=cores, description="Threads that heads are run in."
    )
    head_servers: list[str] = Field(
        default_factory=list,
        description="HOST:PORT of a head server, or dns:///HOST:PORT of a group of head servers. "
        "Heads are applied there instead of here; --heads is not needed then.",
    )
    encoder_address: str = Field(
        "",
        description="HOST:PORT of an encoder server, or dns:///HOST:PORT of a group of them. Texts "
        "are encoded there instead of here; empty to encode here.",
    )
    max_predictions: int = Field(
        64,
        ge=MAX_TEXTS,
        description="Most texts that heads are applied to at the same time; more are refused with "
        "RESOURCE_EXHAUSTED.",
    )

    keys: Path | None = Field(
        None,
        description="File of the keys that callers must have, made by `winnow keys new`. Without "
        "it any caller who reaches a port may call. The file is read again when it changes.",
    )
    peer_calls: Count = Field(
        1_000,
        description="Maximum concurrent calls of a caller on each port, streams included. It is "
        "at least twice --max-in-flight. Further calls get RESOURCE_EXHAUSTED. A caller is a key "
        "or, without --keys, a client address. Behind a proxy all clients share one address. For "
        "health watches and reflection the limit is a tenth of it per address.",
    )

    @field_validator("shards", "head_servers")
    @classmethod
    def _check_targets(cls, targets: list[str]) -> list[str]:
        for target in targets:
            resolver(target)
        return targets

    @field_validator("encoder_address")
    @classmethod
    def _check_target(cls, target: str) -> str:
        if target:
            resolver(target)
        return target

    @field_validator("rings", mode="before")
    @classmethod
    def _join_groups(cls, parts: Any) -> Any:
        return join_split_groups(parts) if isinstance(parts, list) else parts

    @field_validator("rings")
    @classmethod
    def _check_groups(cls, groups: list[str]) -> list[str]:
        names = [EncoderGroupSetting.parse(group).name for group in groups]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise ValueError(f"two encoder groups have the name {twice}: give each its own")
        return groups

    @model_validator(mode="after")
    def _check_services(self) -> Self:
        if not self.serves_answers and not self.serves_heads:
            raise ValueError(
                f"--shards (or {self.variable('shards')}): field required, unless --heads or "
                "--head-servers is given"
            )
        if self.feed_listen and not self.serves_answers:
            raise ValueError("--feed-listen: there is nothing to feed without --shards")
        if self.http_feed and not (self.http_listen and self.feed_listen):
            raise ValueError("--http-feed: it needs --http-listen and --feed-listen")
        if self.rings and not self.serves_heads:
            raise ValueError(
                "--rings adds encoder groups to the first one: set the first with --heads"
            )
        if not self.head_servers:
            for group in self.further_groups:
                if not group.store:
                    raise ValueError(f"--rings: {group.name} has no store: NAME=BUNDLE,STORE")
        return self

    @model_validator(mode="after")
    def _check_factors(self) -> Self:
        if self.min_wait_factor > self.max_wait_factor:
            raise ValueError(
                f"--min-wait-factor {self.min_wait_factor:g} is more than --max-wait-factor "
                f"{self.max_wait_factor:g}"
            )
        return self

    @property
    def share_to_trace(self) -> float:
        """Share of the calls without a trace context that are traced, 0 to 1."""
        return self.trace_share

    @property
    def most_peer_calls(self) -> int:
        """Most calls of one caller: enough that the limits of questions refuse calls first."""
        return max(self.peer_calls, 2 * self.max_in_flight)

    @property
    def serves_answers(self) -> bool:
        """Whether the front node answers questions."""
        return bool(self.shards or self.fronts)

    @property
    def serves_heads(self) -> bool:
        """Whether the front node serves heads."""
        return bool(self.heads or self.head_servers)

    @property
    def further_groups(self) -> list[EncoderGroupSetting]:
        """Encoder groups beside the default one."""
        return [EncoderGroupSetting.parse(group) for group in self.rings]

    @property
    def patience(self) -> WaitPolicy:
        """The policy for waiting for shards."""
        return WaitPolicy(self.min_coverage, self.min_wait_factor, self.max_wait_factor)

    @property
    def replica_policies(self) -> ReplicaPolicies:
        """The policies for choosing replicas, hedging and retrying."""
        outliers = OutlierSettings(
            consecutive_failures=self.eject_after, latency_factor=self.eject_latency_factor
        )
        return ReplicaPolicies(
            ReplicaSettings(outliers=outliers),
            HedgeSettings(quantile=self.hedge_quantile, budget=self.hedge_budget),
            RetrySettings(max_retries=self.retries),
        )

    @property
    def admission(self) -> LoadSettings:
        """The limits of the load."""
        return LoadSettings(max_reads=self.max_reads, min_granted_share=self.brown_out_floor)

    @property
    def discovery(self) -> DiscoverySettings:
        """How often names are resolved and nodes are polled."""
        return DiscoverySettings(
            resolve_every=self.resolve_every,
            poll_every=self.poll_every,
            poll_idle=self.poll_idle,
            poll_timeout=self.poll_timeout,
        )
