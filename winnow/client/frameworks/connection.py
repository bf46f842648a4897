"""A connection to front nodes as a Pydantic model, for frameworks that are built on Pydantic.

The client does not need Pydantic, so nothing else of it imports this module.
"""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from winnow.address import DEFAULT_ADDRESS
from winnow.client.credentials import Credentials
from winnow.client.frameworks.errors import framework_errors
from winnow.client.frameworks.lazy_clients import TOKEN_VARIABLE, LazyClients


class WinnowConnection(BaseModel):
    """Where the front nodes are, and how to prove who calls."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str = DEFAULT_ADDRESS
    """HOST:PORT of a front node, or a gRPC target of several: `dns:///HOST:PORT`."""
    token: SecretStr = Field(default_factory=lambda: SecretStr(os.environ.get(TOKEN_VARIABLE, "")))
    """The API key's token; by default, the variable WINNOW_TOKEN. Empty for none."""
    tls: bool = False
    """Whether to use TLS. Without `ca`, gRPC's built-in authorities are trusted."""
    ca: Path | None = None
    """PEM file of the authorities that may sign the front node's certificate."""
    cert: Path | None = None
    """PEM file of the client's certificate, if front nodes require one."""
    key: Path | None = None
    """PEM file of the private key that belongs to `cert`."""
    server_name: str = ""
    """Name that the front node's certificate must have; empty for the host of the address."""
    timeout: float | None = None
    """Seconds until a call is given up; None for 10, or for 60 if the call reads texts."""
    index: str = ""
    """Name of the index of all calls, or an alias of it; empty for the default index."""
    tenant: str = ""
    """Tenant of all calls; empty if the key decides it, or the index has no tenants."""

    @classmethod
    def of(cls, connection: "str | WinnowConnection") -> "WinnowConnection":
        """Returns the connection for an argument, which is an address or already a connection."""
        return cls(address=connection) if isinstance(connection, str) else connection

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Returns a copy with some fields replaced, and with clients for the new fields."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("clients", None)
        return copied

    @cached_property
    def clients(self) -> LazyClients:
        """The clients of the front nodes. Raises ValueError if fields contradict each other."""
        fields = self.model_dump(exclude={"address", "token", "timeout", "index", "tenant"})
        with framework_errors():
            credentials = Credentials(**fields, token=self.token.get_secret_value())
            return LazyClients(
                self.address, credentials, self.timeout, index=self.index, tenant=self.tenant
            )
