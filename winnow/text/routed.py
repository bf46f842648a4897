"""A `TextEncoder` that routes texts to a pool of encoder nodes."""

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

import structlog

from winnow.deadline import Deadline
from winnow.domain.encoder import EncoderInfo, StatesFormat
from winnow.errors import DeadlineExceededError, IdentityError, UnavailableError, WinnowError
from winnow.replicas.call import PoolRequest
from winnow.replicas.policy.outliers import OutlierSettings
from winnow.replicas.policy.replicas import Replica, ReplicaSettings
from winnow.replicas.policy.retrying import RetrySettings
from winnow.replicas.routing import ReplicaPolicies, ReplicaRouter
from winnow.replicas.server_pool import ServerPool
from winnow.security.peers import PLAIN_TEXT, PeerChannels
from winnow.text.encoder import OnEncoded, TextEncoding
from winnow.text.remote import RemoteEncoder

_log = structlog.get_logger("winnow.text")
_POLICIES = ReplicaPolicies(
    ReplicaSettings(outliers=OutlierSettings(mismatch_ejects=True)),
    # an address may be a load balancer, behind which the next attempt may reach another node
    retry=RetrySettings(repeat=True),
)


class ReadyNodes:
    """Prefers the nodes that are connected and report SERVING."""

    def __init__(self, servers: ServerPool[RemoteEncoder]) -> None:
        self._servers = servers.servers

    def select(self, replicas: Sequence[Replica]) -> Sequence[Replica]:
        """Returns the ready nodes, or else the connecting ones, or else all."""
        readiness = {r: self._servers[r.address].readiness for r in replicas}
        return [r for r in replicas if readiness[r] == max(readiness.values())]

    def may_wait(self, _replica: Replica) -> bool:
        """Returns False: a text never waits for a node."""
        return False


class RoutedTextEncoder:
    """Encodes each text on one node, and on another node if the first is late or fails.

    It does not cache: wrap it in a `CachedTextEncoder`. Cancelling a call also stops the work of
    the nodes.
    """

    def __init__(
        self,
        fingerprint: str,
        states: StatesFormat = StatesFormat.FLOAT16,
        peers: PeerChannels = PLAIN_TEXT,
        *,
        token_vectors: str = "",
        timeout: float = 2.0,
        startup_timeout: float = 60.0,
    ) -> None:
        """Has no nodes until `update` is called.

        Args:
            fingerprint: of the expected encoder (`Manifest.states_fingerprint`).
            states: wire format of token states, or NONE. INT8 rounds them.
            peers: TLS and credentials for calls to encoder nodes.
            token_vectors: fingerprint of the expected token vectors; empty for none. A node that
                lacks them returns none.
            timeout: seconds for one text; callers with less time cancel their call.
            startup_timeout: seconds that `warm_up` waits for a node.

        """

        def open_node(address: str) -> RemoteEncoder:
            return RemoteEncoder(address, fingerprint, states, peers, token_vectors=token_vectors)

        clock = time.monotonic
        self._nodes = ServerPool("encoder", open_node, _POLICIES.replicas, clock)
        self._router = ReplicaRouter(
            self._nodes.pool, _POLICIES, clock, observer=self._nodes, trace_noun="encoder"
        )
        self._ready = ReadyNodes(self._nodes)
        self._fingerprint, self._states = fingerprint, states
        self._token_vectors = token_vectors
        self._timeout, self._startup_timeout = timeout, startup_timeout
        self._addresses_changed = asyncio.Event()
        """Set and replaced when the addresses change."""
        self._closed = False
        self.close_nodes = self._nodes.close
        """Closes all connections; await it after `close`."""

    def update(self, addresses: Collection[str]) -> None:
        """Sets the addresses of the encoder nodes."""
        if set(addresses) != self._nodes.pool.replicas.by_address.keys():
            self._nodes.update(addresses)
            self._addresses_changed.set()
            self._addresses_changed = asyncio.Event()

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        """Encodes a text on a node, which shares its time fairly among clients.

        `on_encoded` is ignored: the node does not report when it has encoded a text.

        The reported queue time includes the network. Raises the node's WinnowError, or
        UnavailableError on timeout or an invalid reply.
        """
        started = time.perf_counter()
        deadline = Deadline.after(self._timeout)
        request: PoolRequest[RemoteEncoder, TextEncoding] = PoolRequest(
            kind="encode",
            work=len(ids),
            send=lambda node: node.encode(ids, client, deadline),
            deadline=deadline,
            is_brief=True,
            preference=self._ready,
        )
        try:
            encoding = await self._router.call(request)
        except DeadlineExceededError as error:  # our timeout, not the caller's deadline
            late = f"the encoder did not answer within {self._timeout:g} s"
            raise UnavailableError(late) from error
        except WinnowError:
            if self._closed:
                raise asyncio.CancelledError from None
            raise
        if encoding is None:
            raise UnavailableError("no encoder node is known: check --encoder-address")
        elapsed = time.perf_counter() - started
        return replace(encoding, queue=max(elapsed - encoding.encode, 0.0))

    async def warm_up(self, max_tokens: int) -> None:
        """Waits for a node, and checks its encoder.

        Raises UnavailableError if no node replies in time. Raises IdentityError if the node has
        another encoder, lacks the requested states, or accepts fewer than `max_tokens` tokens.
        """
        address, info = await self._first_info()
        if info.fingerprint != self._fingerprint:
            raise IdentityError(
                f"the encoder at {address} is {info.fingerprint} of bundle {info.bundle}, "
                f"expected {self._fingerprint}: give this process and the encoder node the same "
                "bundle"
            )
        if self._states is not StatesFormat.NONE and not info.width:
            raise IdentityError(
                f"the encoder at {address} gives no token states: serve a bundle with this output"
            )
        if max_tokens > info.max_tokens:
            raise IdentityError(
                f"the encoder at {address} accepts at most {info.max_tokens} tokens, but "
                f"{max_tokens} are needed"
            )
        if info.token_vectors != self._token_vectors and self._token_vectors:
            _log.warning(
                "the encoder returns no token vectors, so questions are ranked without late "
                "interaction: give it the bundle of this process",
                address=address,
                bundle=info.bundle,
            )

    def close(self) -> None:
        """Cancels the calls in flight. Their callers of `encode` get CancelledError."""
        self._closed = True
        self._nodes.give_up()

    async def _first_info(self) -> tuple[str, EncoderInfo]:
        """Returns the address and the info of the first node that replies."""
        deadline = Deadline.after(self._startup_timeout)
        while True:
            changed = asyncio.create_task(self._addresses_changed.wait())
            calls = {
                asyncio.create_task(node.info(max(deadline.left(), 0.0))): address
                for address, node in self._nodes.servers.items()
            }
            running = [changed, *calls]
            # each call has its own timeout
            timeout = None if calls else max(deadline.left(), 0.0)
            try:
                done, _ = await asyncio.wait(
                    running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
                )
                for task, address in calls.items():
                    # closing the channel of a removed node cancels the call
                    if task in done and not task.cancelled():
                        return address, task.result()
                if not done:
                    raise UnavailableError(f"no encoder is known after {self._startup_timeout:g} s")
            finally:
                for each in running:
                    each.cancel()
                await asyncio.gather(*running, return_exceptions=True)
