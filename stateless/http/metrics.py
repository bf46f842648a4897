"""Metrics of the HTTP interface; those of its calls are `winnow_request_seconds`, as for gRPC."""

from prometheus_client import CollectorRegistry

from winnow.telemetry.metrics import MetricFactory


class HttpMetrics:
    """Connections."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.connections = make.gauge("winnow_http_connections", "HTTP connections that are open")
        self.ended = make.counter(
            "winnow_http_connections_ended",
            "HTTP connections that the server ended: slow (headers took too long), idle (no "
            "request for a while), crowded (too many others), unread (nobody took the reply)",
            "reason",
        )
