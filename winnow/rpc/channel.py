"""Opens channels between nodes; `winnow.client.channels` opens channels from clients."""

import json

import grpc

from winnow.security.peers import PLAIN_TEXT, PeerChannels

OPTIONS = (
    # detects a lost connection within seconds instead of minutes
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # reconnects to a restarted node within a second
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
        target: HOST:PORT; all addresses of the host name are used. gRPC resolves the name when it
            connects, and again when a connection is lost.
        service: full name of the service, such as `winnow.v1.EncoderService`.
        peers: opens the channel, with or without TLS.

    """
    config = {
        "loadBalancingConfig": [{"round_robin": {}}],
        "healthCheckConfig": {"serviceName": service},
    }
    options = (("grpc.service_config", json.dumps(config)), *OPTIONS)
    return peers.channel(target, options)
