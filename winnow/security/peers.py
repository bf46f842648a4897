"""Channels to the other nodes that a process calls, in plain text or over TLS."""

import asyncio
from collections.abc import Sequence

import grpc
import grpc.aio

from winnow.security.certificates import Certificates
from winnow.security.rotating import RotatingChannel

Options = Sequence[tuple[str, int | str]]
_EVERY = 1.0
"""Seconds between two checks of the files."""


class Peers:
    """Opens channels to nodes: in plain text, or over TLS where there are certificates."""

    def __init__(self, certificates: Certificates | None = None, name: str = "") -> None:
        """`name`: the name in the certificates of nodes; empty for the host that is called."""
        self._certificates, self._name = certificates, name

    def channel(self, target: str, options: Options) -> grpc.aio.Channel:
        """A channel; connects when first used."""
        certificates = self._certificates
        if certificates is None:
            return grpc.aio.insecure_channel(target, options=options)
        named = (("grpc.ssl_target_name_override", self._name),) if self._name else ()

        def newest() -> grpc.aio.Channel:
            credentials = channel_credentials(certificates)
            return grpc.aio.secure_channel(target, credentials, options=(*options, *named))

        return RotatingChannel(newest, lambda: certificates.version)

    async def follow(self) -> None:
        """Reads the files again when they change, for ever."""
        while True:
            await asyncio.sleep(_EVERY)
            if self._certificates is not None:
                await asyncio.to_thread(self._certificates.refresh)


def channel_credentials(certificates: Certificates) -> grpc.ChannelCredentials:
    """The credentials of a client; with the system's authorities where none are named."""
    pem = certificates.pem
    credentials: grpc.ChannelCredentials = grpc.ssl_channel_credentials(pem.ca, pem.key, pem.cert)
    return credentials


PLAIN = Peers()
"""Nodes that are called in plain text."""
