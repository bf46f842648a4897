"""Settings of a front node."""

from typing import ClassVar

from pydantic import Field

from winnow.domain.question import ReadScope
from winnow.settings.common import ServiceSettings, cores


class FrontSettings(ServiceSettings):
    """Answer questions over the shards of an index.

    Example: winnow front --shards 127.0.0.1:9001 --shards 127.0.0.1:9002
    """

    table: ClassVar[str] = "front"

    shards: list[str] = Field(
        min_length=1, description="HOST:PORT of a content node; once per shard, in any order."
    )
    listen: str = Field("127.0.0.1:8080", description="HOST:PORT to serve gRPC on.")
    passages_to_read: int = Field(
        10, ge=1, le=100, description="Passages read where a question does not say."
    )
    answers: int = Field(3, ge=1, le=100, description="Answers where a question does not say.")
    read_scope: ReadScope = Field(
        ReadScope.GLOBAL, description="global or per-shard, where a question does not say."
    )
    max_loss: float = Field(
        0.0,
        ge=0,
        le=100,
        description="Exact match, in percent, that may be lost by reading fewer passages, "
        "where a question does not say.",
    )
    first_look: int = Field(
        2, ge=1, description="Passages read before looking whether more are needed."
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
    merge_reserve: float = Field(
        0.02, ge=0, description="Seconds before a deadline at which shards are given up."
    )
    retrieve_share: float = Field(
        0.4, gt=0, lt=1, description="Share of the time left that retrieval may wait for a shard."
    )
