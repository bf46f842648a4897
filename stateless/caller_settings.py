"""Settings of a server that users call: keys and traces."""

from pathlib import Path

from pydantic import Field

from winnow.settings.common import ProcessSettings
from winnow.settings.values import Share


class CallerSettings(ProcessSettings):
    """Settings of a server that users call."""

    keys: Path | None = Field(
        None,
        description="File of the keys that callers must have, made by `winnow keys new`. Without "
        "a file, everyone who can reach a port may call. A changed file is read again.",
    )
    trace_share: Share = Field(
        1.0,
        description="Share of the calls without a trace context that are traced, 0 to 1. A call "
        "with a trace context is traced if its caller sampled it.",
    )

    @property
    def share_to_trace(self) -> float:
        """Share of the calls without a trace context that are traced, 0 to 1."""
        return self.trace_share
