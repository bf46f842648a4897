"""Encoding on any of several encoder nodes, as a `TextEncoder`.

Knows a pool of nodes; `remote` calls one.
"""

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

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
from winnow.text.encoder import TextEncoding, Then
from winnow.text.remote import RemoteEncoder

_POLICIES = ReplicaPolicies(
    ReplicaSettings(outliers=OutlierSettings(mismatch_ejects=True)),
    # several nodes may share an address: behind a load balancer the next attempt finds another one
    retry=RetrySettings(repeat=True),
)


class ReadyNodes:
    """The preference of every text: nodes that are connected and say that they serve."""

    def __init__(self, servers: ServerPool[RemoteEncoder]) -> None:
        self._servers = servers.servers

    def select(self, replicas: Sequence[Replica]) -> Sequence[Replica]:
        """The nodes that are ready, else those that connect, else all."""
        readiness = {r: self._servers[r.address].readiness for r in replicas}
        return [r for r in replicas if readiness[r] == max(readiness.values())]

    def may_wait(self, _replica: Replica) -> bool:
        """A node encodes at once."""
        return False


class RoutedTextEncoder:
    """Has each text encoded by one node, and by another one if that is late or fails.

    It keeps nothing: wrap it in a `CachedTextEncoder`. A caller that is cancelled ends its calls,
    and the work of the nodes.
    """

    def __init__(
        self,
        fingerprint: str,
        states: StatesFormat = StatesFormat.FLOAT16,
        peers: PeerChannels = PLAIN_TEXT,
        *,
        seconds: float = 2.0,
        patience: float = 60.0,
    ) -> None:
        """Knows no node yet: see `update`.

        Args:
            fingerprint: of the encoder that is meant (`Manifest.states_fingerprint`).
            states: whether token states are wanted, and how they travel. As INT8 they are rounded.
            peers: how encoder nodes are called.
            seconds: that a text may take; callers with less time cancel.
            patience: seconds that `warm_up` waits for a node.

        """

        def open_node(address: str) -> RemoteEncoder:
            return RemoteEncoder(address, fingerprint, states, peers)

        clock = time.monotonic
        self._nodes = ServerPool("encoder", open_node, _POLICIES.replicas, clock)
        self._router = ReplicaRouter(
            self._nodes.pool, _POLICIES, clock, observer=self._nodes, trace_noun="encoder"
        )
        self._ready = ReadyNodes(self._nodes)
        self._fingerprint, self._states = fingerprint, states
        self._seconds, self._patience = seconds, patience
        self._changed = asyncio.Event()
        """Set when the addresses change the next time."""
        self._closed = False
        self.close_nodes = self._nodes.close
        """Closes all connections; to be awaited after `close`."""

    def update(self, addresses: Collection[str]) -> None:
        """From now on texts go to the nodes at these addresses."""
        if set(addresses) != self._nodes.pool.replicas.by_address.keys():
            self._nodes.update(addresses)
            self._changed.set()
            self._changed = asyncio.Event()

    async def encode(
        self, ids: Sequence[int], client: str = "", then: Then | None = None
    ) -> TextEncoding:
        """Encodes on a node, in the turn of `client`.

        What it waited includes the time on the way.

        Raises:
            WinnowError: as the node says; UnavailableError, too, if it takes too long, or what it
                sent is no encoding.

        """
        started = time.perf_counter()
        deadline = Deadline.after(self._seconds)
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
        except DeadlineExceededError as error:  # ours, not that of our caller
            late = f"the encoder did not answer within {self._seconds:g} s"
            raise UnavailableError(late) from error
        except WinnowError:
            if self._closed:
                raise asyncio.CancelledError from None
            raise
        if encoding is None:
            raise UnavailableError("no encoder is known")
        elapsed = time.perf_counter() - started
        return replace(encoding, queue=max(elapsed - encoding.encode, 0.0))

    async def warm_up(self, longest: int) -> None:
        """Waits for a node, and checks that it is the right one.

        Raises:
            UnavailableError: it does not come.
            IdentityError: it has another encoder, gives no states though they are wanted, or takes
                fewer than `longest` tokens.

        """
        address, info = await self._first_info()
        if info.fingerprint != self._fingerprint:
            raise IdentityError(
                f"the encoder at {address} is {info.fingerprint} of bundle {info.bundle}, "
                f"expected {self._fingerprint}: give both the same bundle"
            )
        if self._states is not StatesFormat.NONE and not info.width:
            raise IdentityError(f"the encoder at {address} gives no token states")
        if longest > info.max_tokens:
            raise IdentityError(
                f"the encoder at {address} takes {info.max_tokens} tokens, not {longest}"
            )

    def close(self) -> None:
        """Gives up the calls in hand; their callers are cancelled."""
        self._closed = True
        self._nodes.give_up()

    async def _first_info(self) -> tuple[str, EncoderInfo]:
        """The info of the first node that replies, and its address."""
        deadline = Deadline.after(self._patience)
        while True:
            changed = asyncio.create_task(self._changed.wait())
            asked = {
                asyncio.create_task(node.info(max(deadline.left(), 0.0))): address
                for address, node in self._nodes.servers.items()
            }
            running = [changed, *asked]
            # each node is given up by itself when the time is over
            left = None if asked else max(deadline.left(), 0.0)
            try:
                done, _ = await asyncio.wait(
                    running, timeout=left, return_when=asyncio.FIRST_COMPLETED
                )
                for task, address in asked.items():
                    # the call to a node that has left is cancelled with its channel
                    if task in done and not task.cancelled():
                        return address, task.result()
                if not done:
                    raise UnavailableError(f"no encoder is known after {self._patience:g} s")
            finally:
                for each in running:
                    each.cancel()
                await asyncio.gather(*running, return_exceptions=True)
