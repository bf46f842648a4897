"""Settings of a front node."""

from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from winnow.domain.answer_size import AnswerSize
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
from winnow.stateless.caller_settings import CallerSettings
from winnow.stateless.cluster.polling import DiscoverySettings
from winnow.stateless.heads.encoder_group_setting import EncoderGroupSetting, join_split_groups
from winnow.stateless.heads.validation import MAX_TEXTS
from winnow.stateless.http.settings import HttpSettings
from winnow.stateless.reading.settings import TextReadingSettings

_MAX_DEFAULT_READ_AHEAD = 4
"""Maximum default of --read-ahead."""


class FrontSettings(
    TextReadingSettings, HttpSettings, CallerSettings, PeerSettings, ServiceSettings
):
    """Answer questions over the shards of an index, and predict labels and entities of texts.

    Example: winnow front --shards 127.0.0.1:9001 --shards 127.0.0.1:9002 --heads STORE

    Without --shards, the front node only predicts. Without --heads, it only answers questions.
    With --reader-threads it also reads texts that callers send.
    """

    table: ClassVar[str] = "front"

    shards: list[str] = Field(
        default_factory=list,
        description="HOST:PORT of a content node, or dns:///HOST:PORT of a group of content nodes. "
        "Give it once for each, in any order.",
    )
    fronts: list[str] = Field(
        default_factory=list,
        description="HOST:PORT of another front node (its --shards-listen), or dns:///HOST:PORT of "
        "a group. That front node is used like a content node with many shards. Give it once for "
        "each.",
    )
    shards_listen: OptionalListenAddress = Field(
        "",
        description="HOST:PORT on which other front nodes (--fronts) can use the shards of this "
        "front node; empty for none. Like the port of a content node, it requires no keys.",
    )
    indexes: str = Field(
        "",
        description="File or URL of the catalog of named indexes, such as "
        "s3://bucket/indexes.json, which `winnow indexes` changes. The front node serves all "
        "indexes of the catalog. Without it, the front node serves a single index without a name.",
    )
    quotas: Path | None = Field(
        None,
        description="File of the quotas of tenants, made by `winnow quotas set`. Without a file, "
        "tenants have no limits. A changed file is read again.",
    )
    listen: ListenAddress = Field(
        "127.0.0.1:8080", description="HOST:PORT to serve gRPC on; port 0 for any free one."
    )
    passages_to_read: int = Field(
        10, ge=1, le=100, description="Number of passages to read, unless the question sets it."
    )
    answers: int = Field(
        3, ge=1, le=100, description="Number of answers to return, unless the question sets it."
    )
    read_scope: ReadScope = Field(
        ReadScope.GLOBAL,
        description="Which passages to read, unless the question sets it: the best of the whole "
        "index (global), or the best of each shard (per-shard).",
    )
    retriever: Retriever = Field(
        Retriever.HYBRID,
        description="How to find passages, unless the question sets it: by meaning (dense), by "
        "words (sparse), or by both (hybrid).",
    )
    candidates: int = Field(
        100,
        ge=1,
        le=1_000,
        description="Number of passages with the nearest vectors that hybrid retrieval ranks; at "
        "most the --ef of the content nodes.",
    )
    word_candidates: int = Field(
        100,
        ge=0,
        le=1_000,
        description="Number of best passages by words that hybrid retrieval also ranks, even if "
        "their vectors are far; 0 for none. Sparse retrieval ranks at least --candidates.",
    )
    max_loss: float = Field(
        0.3,
        ge=0,
        le=100,
        description="Accuracy budget for early stopping, in points of exact match (0 to 100), "
        "unless the question sets it. 0 disables early stopping, which needs the global scope, "
        "hybrid retrieval, and a bundle with a rule for the budget.",
    )
    answer_size: AnswerSize = Field(
        AnswerSize.AUTO,
        description="What to show of an answer, unless the question sets it: its words (span), its "
        "sentence or list item (sentence), or its passage (passage). auto chooses the span or the "
        "sentence.",
    )
    min_confidence: Share | None = Field(
        None,
        description="Minimum confidence of an answer, 0 to 1, unless the question sets it. Below "
        "it, the reply says that there is no answer. If it is not set, the bundle decides. It "
        "needs a bundle with a calibrated confidence.",
    )
    refuse_unread_languages: bool = Field(
        False,
        description="Refuse questions in languages that the bundle does not read. Otherwise their "
        "answers carry a warning.",
    )
    read_ahead: int = Field(
        # content nodes on one machine with the front share its cores
        default_factory=lambda: min(cores(), _MAX_DEFAULT_READ_AHEAD),
        ge=0,
        le=100,
        description="Maximum number of passages that a question reads at once if it may stop "
        "early. Idle cores read them speculatively: answers come sooner and stay the same. 0 "
        "disables speculative reads.",
    )
    encoder_threads: Threads = Field(
        default_factory=cores,
        description="Threads that encode questions and texts, in each encoder group.",
    )
    cache_mb: int = Field(
        64,
        ge=0,
        le=1 << 20,
        description="Memory for cached encodings of questions, in MiB; 0 disables the cache. An "
        "encoding takes about 2 KB, or 12 KB if heads are served.",
    )
    answer_cache_mb: int = Field(
        16,
        ge=0,
        le=1 << 20,
        description="Memory for cached answers, in MiB; 0 disables the cache. An answer takes "
        "about 6 KB. Cached answers are used only while the index is unchanged.",
    )
    max_in_flight: Count = Field(
        64,
        description="Maximum number of questions in progress. Further questions are refused with "
        "RESOURCE_EXHAUSTED.",
    )
    max_reads: Count = Field(
        2_000,
        description="Maximum number of passages to read for all questions in progress together.",
    )
    brown_out_floor: float = Field(
        0.3,
        gt=0,
        le=1,
        description="Smallest share of its passages that a question may read under load, above 0 "
        "up to 1. A question that cannot read this share in time is refused. 1 disables reading "
        "fewer passages.",
    )
    merge_reserve: float = Field(
        0.02,
        ge=0,
        description="Seconds before the deadline of a question at which late shards are given up.",
    )
    retrieve_share: float = Field(
        0.4,
        gt=0,
        lt=1,
        description="Share of the remaining time that retrieval may take, between 0 and 1.",
    )
    min_coverage: Share = Field(
        1.0,
        description="Share of the shards to wait for until the deadline, unless the question sets "
        "it. Once these have replied, the other shards get a part of the remaining time.",
    )
    min_wait_factor: Share = Field(
        0.0,
        description="Share of the remaining time to wait for the last missing shard, after "
        "--min-coverage is reached.",
    )
    max_wait_factor: Share = Field(
        1.0,
        description="Share of the remaining time to wait if as many shards are missing as "
        "--min-coverage allows.",
    )
    partial_results: PartialResults = Field(
        PartialResults.ALLOW,
        description="Whether an answer may come from a part of the index (allow or forbid), unless "
        "the question sets it.",
    )
    resolve_every: Seconds = Field(
        5.0,
        description="Seconds between two lookups of a dns:/// target.",
    )
    poll_every: Seconds = Field(
        0.5,
        description="Seconds between two polls of a content node while questions arrive.",
    )
    poll_idle: Seconds = Field(
        5.0,
        description="Seconds between two polls of a healthy content node while no questions "
        "arrive.",
    )
    poll_timeout: Seconds = Field(
        1.0,
        description="Seconds that a poll may take. A content node that misses two polls gets no "
        "calls.",
    )
    form_timeout: float = Field(
        30.0,
        ge=0,
        description="Seconds to wait for all shards at start. Then the front node serves the "
        "shards that it has found.",
    )
    retries: int = Field(
        1,
        ge=0,
        le=3,
        description="Maximum number of retries of a failed call, each on another replica.",
    )
    hedge_budget: Share = Field(
        0.05,
        description="Maximum number of hedges per call, 0 to 1. A hedge sends a late call to a "
        "second replica, too. 0 disables hedging.",
    )
    hedge_quantile: float = Field(
        0.95,
        gt=0,
        lt=1,
        description="Quantile of recent latencies after which a call is late, between 0 and 1.",
    )
    eject_after: Count = Field(
        3,
        description="Number of consecutive failures after which a replica gets no calls for a "
        "while.",
    )
    eject_latency_factor: float = Field(
        5.0,
        gt=1,
        description="A replica that is this many times slower than the others gets no calls for a "
        "while.",
    )

    feed_listen: OptionalListenAddress = Field(
        "",
        description="HOST:PORT that accepts passages and deletions; empty for none. Everyone who "
        "can reach this port can change the index. The content nodes need --feed.",
    )
    feed_threads: Threads = Field(
        default_factory=cores, description="Threads that encode fed passages."
    )
    feed_nice: int = Field(
        # threads share Python's lock: at a higher niceness a thread would hold the lock for long
        10,
        ge=0,
        le=19,
        description="Niceness of the threads that encode fed passages. A higher value gives "
        "questions more priority.",
    )
    feed_in_hand: int = Field(
        1_000,
        ge=100,
        description="Maximum number of fed passages that are being encoded and stored. Further "
        "passages are refused with RESOURCE_EXHAUSTED. A passage of more than 2000 characters "
        "counts as several.",
    )
    feed_deadline: float = Field(
        30.0,
        gt=0,
        le=3_600,
        description="Deadline in seconds of a feeding call whose caller sets none, and of each "
        "message of a feeding stream.",
    )

    http_feed: bool = Field(
        False,
        description="Accept passages and deletions over HTTP, too. Everyone who can reach the HTTP "
        "port can change the index. Needs --feed-listen.",
    )

    heads: str = Field(
        "",
        description="Store of heads to predict with: a directory, or a URL such as "
        "s3://BUCKET/HEADS; empty for none.",
    )
    rings: list[str] = Field(
        default_factory=list,
        description="Further encoder group as NAME=BUNDLE,STORE: another encoder with its own "
        "heads. Give it once for each group. With --head-servers leave out STORE. The default "
        "group uses --bundle and --heads, and has the name of the bundle.",
    )
    heads_budget_mb: Count = Field(
        512,
        description="Memory for heads in each encoder group, in MB. The least recently used heads "
        "are evicted.",
    )
    head_threads: Threads = Field(
        default_factory=cores,
        description="Threads that run heads.",
    )
    head_servers: list[str] = Field(
        default_factory=list,
        description="HOST:PORT of a head server, or dns:///HOST:PORT of a group. Head servers "
        "apply the heads instead of this process, and --heads is not needed.",
    )
    encoder_address: str = Field(
        "",
        description="HOST:PORT of an encoder server, or dns:///HOST:PORT of a group, that encodes "
        "texts instead of this process; empty to encode in this process.",
    )
    max_predictions: int = Field(
        64,
        ge=MAX_TEXTS,
        description="Maximum number of texts to predict in progress. Further texts are refused "
        "with RESOURCE_EXHAUSTED.",
    )

    peer_calls: Count = Field(
        1_000,
        description="Maximum number of concurrent calls of a caller on each port, streams "
        "included; at least twice --max-in-flight. Further calls get RESOURCE_EXHAUSTED. A "
        "caller is a key or, without --keys, a client address: all clients behind a proxy count as "
        "one caller. Health watches and reflection have a tenth of this limit per address.",
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
            raise ValueError(f"two encoder groups have the name {twice}: rename one of them")
        return groups

    @model_validator(mode="after")
    def _check_services(self) -> Self:
        if not (self.serves_answers or self.serves_heads or self.reader_threads):
            raise ValueError(
                f"--shards (or {self.variable('shards')}): field required, unless --heads, "
                "--head-servers or --reader-threads is given"
            )
        if self.feed_listen and not self.serves_answers:
            raise ValueError("--feed-listen needs --shards or --fronts: no shard can be fed")
        if self.indexes and not self.serves_answers:
            raise ValueError("--indexes needs --shards: name the content nodes")
        if self.indexes and self.shards_listen:
            raise ValueError(
                "--shards-listen serves the shards of a single index: leave --indexes out"
            )
        if self.http_feed and not (self.http_listen and self.feed_listen):
            raise ValueError("--http-feed needs --http-listen and --feed-listen")
        if self.rings and not self.serves_heads:
            raise ValueError(
                "--rings adds encoder groups to the default group: set the default group with "
                "--heads or --head-servers"
            )
        if not self.head_servers:
            for group in self.further_groups:
                if not group.store:
                    raise ValueError(
                        f"--rings: group {group.name} has no store of heads: write "
                        "NAME=BUNDLE,STORE"
                    )
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
    def most_peer_calls(self) -> int:
        """Maximum concurrent calls of one caller. It is so high that the limits of questions refuse
        calls first.
        """
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
    def encodes(self) -> bool:
        """Whether the front node encodes anything, be it questions or texts."""
        return self.serves_answers or self.serves_heads

    @property
    def further_groups(self) -> list[EncoderGroupSetting]:
        """The encoder groups of --rings, without the default group."""
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
        """The limits of the passages to read."""
        return LoadSettings(max_reads=self.max_reads, min_granted_share=self.brown_out_floor)

    @property
    def discovery(self) -> DiscoverySettings:
        """How often targets are resolved and nodes are polled."""
        return DiscoverySettings(
            resolve_every=self.resolve_every,
            poll_every=self.poll_every,
            poll_idle=self.poll_idle,
            poll_timeout=self.poll_timeout,
        )
