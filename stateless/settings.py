"""Settings of a front node."""

from typing import ClassVar, Self

from pydantic import Field, field_validator, model_validator

from stateless.cluster.discovery import DiscoverySettings
from stateless.cluster.resolving import resolver
from stateless.policy.hedging import HedgeSettings
from stateless.policy.outliers import OutlierSettings
from stateless.policy.replicas import ReplicaSettings
from stateless.policy.retrying import RetrySettings
from stateless.replicas.replicated import ReplicaPolicies
from winnow.domain.question import PartialResults, Patience, ReadScope, Retriever
from winnow.policy.load import LoadSettings
from winnow.settings.common import ServiceSettings, cores

_MOST_AHEAD = 4


class FrontSettings(ServiceSettings):
    """Answer questions over the shards of an index.

    Example: winnow front --shards 127.0.0.1:9001 --shards 127.0.0.1:9002
    """

    table: ClassVar[str] = "front"

    shards: list[str] = Field(
        min_length=1,
        description="HOST:PORT of a content node, or dns:///HOST:PORT of any number of them; once "
        "per node or group, in any order. Which shard a node serves is found out.",
    )
    listen: str = Field("127.0.0.1:8080", description="HOST:PORT to serve gRPC on.")
    passages_to_read: int = Field(
        10, ge=1, le=100, description="Passages read where a question does not say."
    )
    answers: int = Field(3, ge=1, le=100, description="Answers where a question does not say.")
    read_scope: ReadScope = Field(
        ReadScope.GLOBAL, description="global or per-shard, where a question does not say."
    )
    retriever: Retriever = Field(
        Retriever.HYBRID,
        description="dense (the nearest encodings) or hybrid (the question's words count, too), "
        "where a question does not say.",
    )
    candidates: int = Field(
        100,
        ge=1,
        le=1_000,
        description="Nearest passages among which hybrid retrieval chooses those to read; nodes "
        "look at no more than their --ef.",
    )
    max_loss: float = Field(
        0.0,
        ge=0,
        le=100,
        description="Exact match, in percent, that may be lost by reading fewer passages, "
        "where a question does not say.",
    )
    read_ahead: int = Field(
        # content nodes on one machine with the front share its cores
        default_factory=lambda: min(cores(), _MOST_AHEAD),
        ge=0,
        le=100,
        description="Passages that are read at once at most where reading may stop early, but only "
        "while readers are idle: answers stay as they are and come sooner, for more work; 0 never "
        "reads what may not be needed. By default 4, fewer on a machine of fewer cores.",
    )
    encoder_threads: int = Field(
        default_factory=cores, ge=1, le=1024, description="Questions encoded at the same time."
    )
    cache_entries: int = Field(
        10_000, ge=0, description="Encodings kept, by token ids; about 2 KB each."
    )
    max_in_flight: int = Field(
        64, ge=1, description="Questions at once; more are refused with RESOURCE_EXHAUSTED."
    )
    max_reads: int = Field(
        2_000, ge=1, description="Passages to read at once, for all questions together."
    )
    brown_out_floor: float = Field(
        0.3,
        gt=0,
        le=1,
        description="Share of the passages asked for that are read at least under pressure, before "
        "a question is refused; 1 reads all or refuses.",
    )
    merge_reserve: float = Field(
        0.02, ge=0, description="Seconds before a deadline at which shards are given up."
    )
    retrieve_share: float = Field(
        0.4, gt=0, lt=1, description="Share of the time left that retrieval may wait for a shard."
    )
    min_coverage: float = Field(
        1.0,
        ge=0,
        le=1,
        description="Share of the shards that is waited for until the deadline, where a question "
        "does not say; once it has answered, the others get only a part of the time left.",
    )
    min_wait_factor: float = Field(
        0.0, ge=0, le=1, description="That part where one shard is missing."
    )
    max_wait_factor: float = Field(
        1.0, ge=0, le=1, description="That part where as many are missing as may be."
    )
    partial_results: PartialResults = Field(
        PartialResults.ALLOW,
        description="allow or forbid answers that do not cover the whole index, where a question "
        "does not say.",
    )
    resolve_every: float = Field(
        5.0, gt=0, description="Seconds after which dns:/// targets are looked up again."
    )
    poll_every: float = Field(
        0.5, gt=0, description="Seconds after which every node is asked again what it serves."
    )
    poll_timeout: float = Field(
        1.0, gt=0, description="Seconds for a reply; a node that misses two is left out."
    )
    form_timeout: float = Field(
        30.0, ge=0, description="Seconds to wait for a whole index before serving a part of it."
    )
    retries: int = Field(
        1, ge=0, le=3, description="Times that a failed call is sent to another replica."
    )
    hedge_budget: float = Field(
        0.05, ge=0, le=1, description="Late calls sent to a second replica, per call; 0 for none."
    )
    hedge_quantile: float = Field(
        0.95, gt=0, lt=1, description="Share of recent calls that took less than a late one."
    )
    eject_after: int = Field(
        3, ge=1, description="Failures in a row after which a replica is left out for a while."
    )
    eject_latency_factor: float = Field(
        5.0, gt=1, description="Left out, too, when so many times slower than the others."
    )

    @field_validator("shards")
    @classmethod
    def _check_targets(cls, targets: list[str]) -> list[str]:
        for target in targets:
            resolver(target)
        return targets

    @model_validator(mode="after")
    def _check_factors(self) -> Self:
        if self.min_wait_factor > self.max_wait_factor:
            raise ValueError(
                f"min_wait_factor {self.min_wait_factor:g} is more than max_wait_factor "
                f"{self.max_wait_factor:g}"
            )
        return self

    @property
    def patience(self) -> Patience:
        """How long shards are waited for."""
        return Patience(self.min_coverage, self.min_wait_factor, self.max_wait_factor)

    @property
    def replica_policies(self) -> ReplicaPolicies:
        """How replicas are chosen, and when another one is asked."""
        outliers = OutlierSettings(
            strikes=self.eject_after, latency_factor=self.eject_latency_factor
        )
        return ReplicaPolicies(
            ReplicaSettings(outliers=outliers),
            HedgeSettings(quantile=self.hedge_quantile, budget=self.hedge_budget),
            RetrySettings(most=self.retries),
        )

    @property
    def admission(self) -> LoadSettings:
        """How much is let in."""
        return LoadSettings(most_reads=self.max_reads, least_share=self.brown_out_floor)

    @property
    def discovery(self) -> DiscoverySettings:
        """How often to look who is there."""
        return DiscoverySettings(self.resolve_every, self.poll_every, self.poll_timeout)
