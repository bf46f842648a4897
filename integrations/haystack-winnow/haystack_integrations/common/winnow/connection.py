"""A connection to front nodes that can be a part of a serialised pipeline."""

from functools import cached_property
from typing import Any, Self

from haystack import default_from_dict, default_to_dict
from haystack.utils import Secret

from winnow.address import DEFAULT_ADDRESS
from winnow.client import Credentials
from winnow.client.frameworks import TOKEN_VARIABLE, LazyClients, framework_errors


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
        timeout: float | None = None,
        index: str = "",
        tenant: str = "",
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
        :param timeout: Seconds until a call is given up; None for 10, or for 60 if the call reads
            texts.
        :param index: Name of the index of all calls, or an alias of it; empty for the default
            index.
        :param tenant: Tenant of all calls; empty if the key decides it, or the index has no
            tenants.
        """
        self.address, self.token = address, token
        self.timeout, self.index, self.tenant = timeout, index, tenant
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
            credentials = Credentials(**self.tls, token=token)
            return LazyClients(
                self.address, credentials, self.timeout, index=self.index, tenant=self.tenant
            )

    def to_dict(self) -> dict[str, Any]:
        """Serialises the connection; a token only by the name of its variable."""
        return default_to_dict(
            self,
            address=self.address,
            token=self.token,
            timeout=self.timeout,
            index=self.index,
            tenant=self.tenant,
            **self.tls,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "WinnowConnection":
        """Makes the connection of `to_dict`."""
        return default_from_dict(cls, data)

    def close(self) -> None:
        """Closes the blocking client. The next call opens another one."""
        if "clients" in self.__dict__:
            self.clients.close()

    async def close_async(self) -> None:
        """Closes the client of the event loop, as `close`."""
        if "clients" in self.__dict__:
            await self.clients.close_async()


class ConnectedComponent:
    """A base of components: closes their connection, and makes them from serialised ones."""

    connection: WinnowConnection

    def close(self) -> None:
        """Closes the connection. The next run opens another one."""
        self.connection.close()

    async def close_async(self) -> None:
        """Closes the connection of the event loop, as `close`."""
        await self.connection.close_async()

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Makes the component of `to_dict`."""
        return default_from_dict(cls, data)
