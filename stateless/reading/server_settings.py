"""Settings of `winnow reader`: a server that reads texts of callers, without an index."""

from typing import ClassVar

from pydantic import Field

from winnow.settings.common import ServiceSettings, cores
from winnow.settings.values import ListenAddress, Threads
from winnow.stateless.caller_settings import CallerSettings
from winnow.stateless.http.settings import HttpSettings
from winnow.stateless.reading.settings import TextReadingSettings
from winnow.stateless.settings import FrontSettings


class ReaderSettings(TextReadingSettings, HttpSettings, CallerSettings, ServiceSettings):
    """Read, rerank and highlight texts that callers send, without an index.

    Any number of these servers may have the same DNS name: a call goes to any of them.

    Example: winnow reader --listen 127.0.0.1:8080 --http-listen 127.0.0.1:8088
    """

    table: ClassVar[str] = "reader"

    listen: ListenAddress = Field(
        "127.0.0.1:8080", description="HOST:PORT to serve gRPC on; port 0 for any free one."
    )
    reader_threads: Threads = Field(
        default_factory=cores, description="Threads that read the texts."
    )

    @property
    def front(self) -> FrontSettings:
        """The settings of a front that does nothing but read texts."""
        return FrontSettings.model_validate({n: getattr(self, n) for n in type(self).model_fields})
