"""The one place where channels between nodes are built; those of clients: `winnow.client`."""

import grpc

_OPTIONS = (
    # a node that was cut off is noticed within seconds, not minutes
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # a node that came back is found again within a second
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
)


def open_channel(address: str) -> grpc.aio.Channel:
    """A channel to `host:port`; connects when first used."""
    return grpc.aio.insecure_channel(address, options=_OPTIONS)
