"""Finding head servers, and keeping to those that are there.

Knows targets and what calls a server; the process that serves runs `follow` beside its serving.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence

import structlog

from winnow.errors import UnavailableError
from winnow.heads.placed import PlacedHeads
from winnow.heads.remote import SERVICE, RemoteHeads
from winnow.policy.head_servers import HeadServers
from winnow.resolving import Resolver
from winnow.rpc.channel import open_balanced
from winnow.security.peers import PLAIN, Peers

_log = structlog.get_logger("winnow.heads")
_EVERY = 5.0


def placed_heads(fingerprint: str, peers: Peers = PLAIN) -> PlacedHeads:
    """Heads on head servers, none of which is known yet.

    Args:
        fingerprint: of the encoder that makes the states (`Manifest.states_fingerprint`).
        peers: how head servers are called.

    """

    def reach(address: str) -> RemoteHeads:
        # a server that says NOT_SERVING gets no calls; where else to try is decided here
        channel = open_balanced(address, SERVICE, tries=1, peers=peers)
        return RemoteHeads(channel, address, fingerprint)

    return PlacedHeads(reach, HeadServers(time.monotonic))


async def follow(
    resolvers: Sequence[Resolver],
    update: Callable[[Collection[str]], None],
    every: float = _EVERY,
) -> None:
    """Looks all targets up now and every so many seconds, for ever, and hands on their addresses.

    Where a name cannot be looked up, its last addresses stay.
    """
    found: dict[str, frozenset[str]] = {}
    while True:
        for resolver in resolvers:
            try:
                found[resolver.target] = await resolver.addresses()
            except UnavailableError as error:
                _log.warning("head servers cannot be looked up", error=str(error))
        update(frozenset().union(*found.values()))
        await asyncio.sleep(every)
