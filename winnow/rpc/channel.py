"""Opens the channels between nodes; `winnow.client.channels` opens those of clients."""

import json

import grpc

from winnow.security.peers import PLAIN_TEXT, PeerChannels

OPTIONS = (
    # a lost connection is noticed within seconds, not minutes
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # a restarted node is connected again within a second
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
)


def open_channel(address: str, peers: PeerChannels = PLAIN_TEXT) -> grpc.aio.Channel:
    """Opens a channel to `host:port`, which connects when it is first used."""
    return peers.channel(address, OPTIONS)


def open_unshared(address: str, peers: PeerChannels = PLAIN_TEXT) -> grpc.aio.Channel:
    """Opens a channel with a separate connection, so that it delays no other calls."""
    options = (("grpc.use_local_subchannel_pool", 1), *OPTIONS)
    return peers.channel(address, options)


def open_balanced(target: str, service: str, peers: PeerChannels = PLAIN_TEXT) -> grpc.aio.Channel:
    """Opens a channel that sends calls in turn to all servers of `target` that serve `service`.

    A server that is unreachable, or whose health is NOT_SERVING, gets no calls. Without any server,
    calls fail immediately, unless they set `wait_for_ready`. Failed calls are not retried.

    Args:
        target: HOST:PORT; all addresses of the name are used. gRPC resolves it when it connects,
            and again when a connection is lost.
        service: full name, such as `winnow.v1.EncoderService`.
        peers: whether and how TLS is used.

    """
    config = {
        "loadBalancingConfig": [{"round_robin": {}}],
        "healthCheckConfig": {"serviceName": service},
    }
    options = (("grpc.service_config", json.dumps(config)), *OPTIONS)
    return peers.channel(target, options)
