"""Settings of the service that reads texts sent by callers."""

from pydantic import Field

from winnow.settings.source import Settings
from winnow.settings.values import Count


class TextReadingSettings(Settings):
    """Settings of a server that reads texts of callers."""

    reader_threads: int = Field(
        0,
        ge=0,
        le=1024,
        description="Threads that read texts which callers send (ReadService, /v1/read, "
        "/v1/rerank, /v1/highlight); 0 disables these calls. Keys need the scope read.",
    )
    reader_states_mb: int = Field(
        64,
        ge=0,
        le=1 << 20,
        description="Memory for remembered states of texts that were read, in MiB; 0 disables it. "
        "A text of 100 words takes about 55 KB, and is read in half the time when it comes again.",
    )
    reader_queue: Count = Field(
        4_000,
        description="Maximum number of texts of callers that wait to be read or are being read. "
        "Further requests are refused with RESOURCE_EXHAUSTED. A text of 800 bytes or more counts "
        "as several.",
    )
    reader_deadline: float = Field(
        30.0,
        gt=0,
        le=3_600,
        description="Deadline in seconds of a call to read texts whose caller sets none.",
    )
