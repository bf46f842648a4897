"""A connection to front nodes that can be a part of a serialised pipeline."""

from functools import cached_property
from typing import Any

from haystack import default_from_dict, default_to_dict
from haystack.utils import Secret

from winnow.address import DEFAULT_ADDRESS
from winnow.client import Credentials
from winnow.client.frameworks import TOKEN_VARIABLE, LazyClients, framework_errors

_TIMEOUT = 10.0


class WinnowConnection:
    """Where the front nodes are, and how to prove who calls."""

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        token: Secret | None = Secret.from_env_var(TOKEN_VARIABLE, strict=False),  # noqa: B008
        tls: bool = False,
        ca: str | None = None,
        cert: str | None = None,
        key: str | None = None,
        server_name: str = "",
        timeout: float = _TIMEOUT,
    ) -> None:
        """Opens nothing, and reads neither files nor secrets.

        :param address: HOST:PORT of a front node, or a gRPC target of several, such as
            `dns:///HOST:PORT`.
        :param token: The API key's token.
        :param tls: Whether to use TLS. Without `ca`, gRPC's built-in authorities are trusted.
        :param ca: PEM file of the authorities that may sign the front node's certificate.
        :param cert: PEM file of the client's certificate, if front nodes require one.
        :param key: PEM file of the private key that belongs to `cert`.
        :param server_name: Name that the front node's certificate must have; empty for the host of
            the address.
        :param timeout: Seconds until a call is given up.
        """
        self.address, self.token, self.timeout = address, token, timeout
        self.tls: dict[str, Any] = {
            "tls": tls,
            "ca": ca,
            "cert": cert,
            "key": key,
            "server_name": server_name,
        }

    @classmethod
    def of(cls, connection: "str | WinnowConnection") -> "WinnowConnection":
        """Returns a connection itself, or one to an address."""
        return cls(connection) if isinstance(connection, str) else connection

    @cached_property
    def clients(self) -> LazyClients:
        """The clients of the front nodes.

        :raises ValueError: If the parameters contradict each other, or the secret has no value.
        """
        token = (self.token and self.token.resolve_value()) or ""
        with framework_errors():
            return LazyClients(self.address, Credentials(**self.tls, token=token), self.timeout)

    def to_dict(self) -> dict[str, Any]:
        """Serialises the connection; a token only by the name of its variable."""
        return default_to_dict(
            self, address=self.address, token=self.token, timeout=self.timeout, **self.tls
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "WinnowConnection":
        """Makes the connection of `to_dict`."""
        return default_from_dict(cls, data)
