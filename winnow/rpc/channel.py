"""The one place where gRPC channels are built."""

import json

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


def open_balanced_channel(target: str, service: str) -> grpc.aio.Channel:
    """A channel that spreads calls over all addresses of a target whose `service` is healthy.

    Args:
        target: as gRPC names them: `dns:///host:port`, or `ipv4:address:port,address:port`.
        service: what is asked for by the health protocol; one that is about to stop says so there
            first, and gets no further calls.

    """
    config = {
        "loadBalancingConfig": [{"round_robin": {}}],
        "healthCheckConfig": {"serviceName": service},
    }
    options = [*_OPTIONS, ("grpc.service_config", json.dumps(config))]
    return grpc.aio.insecure_channel(target, options=options)
