"""Opens heads that run on head servers."""

from collections.abc import Collection

from winnow.heads.placed import PlacedHeads
from winnow.heads.remote import placed_heads
from winnow.replicas.server_pool import follow_targets
from winnow.resolving import resolver
from winnow.stateless.composing.encoders import OpenEncoder
from winnow.stateless.composing.front import Front
from winnow.stateless.composing.local_heads import OpenHeads


class PlacedHeadsOpener:
    """Opens the heads of encoder groups on head servers, and follows the servers' addresses."""

    def __init__(self, front: Front) -> None:
        self._stack, self._settings, self._peers = front.stack, front.settings, front.access.peers
        self._placed: list[PlacedHeads] = []

    def open(self, _name: str, encoder: OpenEncoder, _store: str) -> OpenHeads:
        """Opens the heads of an encoder group. Their servers are unknown until `follow` runs."""
        heads = placed_heads(encoder.bundle.manifest.states_fingerprint, self._peers)
        self._stack.push_async_callback(heads.close)
        self._placed.append(heads)
        return OpenHeads(heads)

    async def follow(self) -> None:
        """Resolves the addresses of the head servers periodically; never returns."""
        resolvers = [resolver(target) for target in self._settings.head_servers]
        await follow_targets("head server", resolvers, self._update, self._settings.resolve_every)

    def _update(self, addresses: Collection[str]) -> None:
        for heads in self._placed:
            heads.update(addresses)
