"""Channels to the other nodes that a process calls, in plain text or over TLS."""

import asyncio
from collections.abc import Sequence

import grpc
import grpc.aio

from winnow.security.certificates import Certificates
from winnow.security.rotating import RotatingChannel

Options = Sequence[tuple[str, int | str]]
_CHECK_INTERVAL = 1.0
"""Seconds between two checks of the certificate files."""


class PeerChannels:
    """Opens channels to other nodes: over TLS with certificates, otherwise in plain text."""

    def __init__(self, certificates: Certificates | None = None, name: str = "") -> None:
        """`name`: host name that nodes' certificates must have; empty for the called host."""
        self._certificates, self._name = certificates, name

    def channel(self, target: str, options: Options) -> grpc.aio.Channel:
        """Opens a channel, which connects when it is first used."""
        certificates = self._certificates
        if certificates is None:
            return grpc.aio.insecure_channel(target, options=options)
        override = (("grpc.ssl_target_name_override", self._name),) if self._name else ()

        def open_current() -> grpc.aio.Channel:
            credentials = channel_credentials(certificates)
            return grpc.aio.secure_channel(target, credentials, options=(*options, *override))

        return RotatingChannel(open_current, lambda: certificates.version)

    async def watch_files(self) -> None:
        """Rereads the certificate files when they change. Runs until it is cancelled."""
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            if self._certificates is not None:
                await asyncio.to_thread(self._certificates.refresh)


def channel_credentials(certificates: Certificates) -> grpc.ChannelCredentials:
    """Returns the TLS credentials of a client. Without `ca`, it trusts gRPC's authorities."""
    pem = certificates.pem
    credentials: grpc.ChannelCredentials = grpc.ssl_channel_credentials(pem.ca, pem.key, pem.cert)
    return credentials


PLAIN_TEXT = PeerChannels()
"""Opens channels in plain text."""
