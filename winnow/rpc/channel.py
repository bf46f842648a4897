"""Builds the channels between nodes; those of clients: `winnow.client.channels`."""

import json

import grpc

from winnow.security.peers import PLAIN_TEXT, PeerChannels

OPTIONS = (
    # a node that was cut off is noticed within seconds, not minutes
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # a node that came back is found again within a second
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
)


def open_channel(address: str, peers: PeerChannels = PLAIN_TEXT) -> grpc.aio.Channel:
    """A channel to `host:port`; connects when first used."""
    return peers.channel(address, OPTIONS)


def open_apart(address: str, peers: PeerChannels = PLAIN_TEXT) -> grpc.aio.Channel:
    """Opens a channel with its own connection, which delays no other calls."""
    options = (("grpc.use_local_subchannel_pool", 1), *OPTIONS)
    return peers.channel(address, options)


def open_balanced(target: str, service: str, peers: PeerChannels = PLAIN_TEXT) -> grpc.aio.Channel:
    """A channel to all servers behind `target` that say they serve `service`, one after the other.

    A server that says NOT_SERVING, or is gone, gets no calls. Calls fail at once while there is
    none, unless they wait for one to be ready. The caller sends failed calls again.

    Args:
        target: HOST:PORT, all addresses of which are used. gRPC looks names up when it connects,
            and again when a connection is lost.
        service: full name, such as `winnow.v1.EncoderService`.
        peers: how other nodes are called.

    """
    config = {
        "loadBalancingConfig": [{"round_robin": {}}],
        "healthCheckConfig": {"serviceName": service},
    }
    options = (("grpc.service_config", json.dumps(config)), *OPTIONS)
    return peers.channel(target, options)
