"""Settings of the HTTP port of a server."""

from pydantic import Field

from winnow.settings.source import Settings
from winnow.settings.values import OptionalListenAddress


class HttpSettings(Settings):
    """Settings of a server that serves HTTP beside gRPC."""

    http_listen: OptionalListenAddress = Field(
        "",
        description="HOST:PORT to serve HTTP on, beside gRPC; empty for none.",
    )
    http_hosts: list[str] = Field(
        default_factory=list,
        description="Host name under which callers may use HTTP, such as qa.example.org. Give it "
        "once for each name. IP addresses and localhost are always allowed, and other names "
        "are refused with 421. With --keys and without this setting any name is allowed, unless "
        "HTTP listens on 127.0.0.1.",
    )
    http_pages: bool = Field(
        True,
        description="Serve web pages over HTTP: / to ask questions and see the cluster, and /docs.",
    )
    http_connections: int = Field(
        512,
        ge=1,
        le=65_536,
        description="Maximum number of open HTTP connections. A further connection closes the one "
        "that has been silent for longest.",
    )
