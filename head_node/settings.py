"""Settings of a head node."""

from typing import ClassVar

from pydantic import Field

from winnow.heads.refresh import REFRESH_SECONDS
from winnow.settings.common import ProcessSettings, cores
from winnow.settings.values import Count, ListenAddress, Threads


class HeadNodeSettings(ProcessSettings):
    """Serve the heads of a store to front nodes.

    The server loads a head on its first use. No encoder is needed: front nodes send token states.

    Example: winnow heads serve --store bundles/heads --listen 127.0.0.1:9200
    """

    table: ClassVar[str] = "heads"

    store: str = Field(
        min_length=1, description="Directory or URL of the heads, such as s3://bucket/heads."
    )
    listen: ListenAddress = Field(
        "127.0.0.1:9200", description="HOST:PORT to serve gRPC on; port 0 for any free one."
    )
    budget_mb: int = Field(
        512,
        ge=1,
        le=1 << 20,
        description="Memory budget for heads, in MB. The least recently used heads are evicted.",
    )
    threads: Threads = Field(default_factory=cores, description="Threads that run heads.")
    max_texts: Count = Field(
        256, description="Maximum number of texts in progress. Further texts are refused."
    )
    refresh: float = Field(
        REFRESH_SECONDS,
        gt=0,
        le=3_600,
        description="Seconds between checks of the store for a new version of a head.",
    )

    @property
    def budget_bytes(self) -> int:
        """Memory budget for heads, in bytes."""
        return self.budget_mb * 1_000_000
