"""TLS settings: certificates of servers, and certificates for calls to other nodes."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from winnow.settings.source import Settings
from winnow.settings.values import OptionalListenAddress


class SecuritySettings(Settings):
    """Settings that protect a server: TLS, health checks and reflection."""

    tls_cert: Path | None = Field(
        None,
        description="PEM file of the server's certificate; without it, the server uses plain text. "
        "The file is read again when it changes.",
    )
    tls_key: Path | None = Field(
        None, description="PEM file of the private key of --tls-cert, without a passphrase."
    )
    tls_client_ca: Path | None = Field(
        None,
        description="PEM file of the authorities that must have signed the clients' certificates. "
        "Without it, clients need no certificate.",
    )
    health_listen: OptionalListenAddress = Field(
        "",
        description="HOST:PORT that serves only gRPC health, in plain text, for probes "
        "that have no certificate; empty for none.",
    )
    reflection: bool = Field(True, description="Let clients list the methods by gRPC reflection.")

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("--tls-cert and --tls-key: give both, or neither")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise ValueError(
                "--tls-client-ca needs --tls-cert: without --tls-cert, the port uses plain text"
            )
        return self


class PeerSettings(Settings):
    """Settings of a process that calls other nodes."""

    peer_ca: Path | None = Field(
        None,
        description="PEM file of the authorities that must have signed other nodes' certificates. "
        "Without it, nodes are called in plain text. The file is read again when it changes.",
    )
    peer_cert: Path | None = Field(
        None, description="PEM file of the certificate with which this process calls other nodes."
    )
    peer_key: Path | None = Field(
        None, description="PEM file of the private key of --peer-cert, without a passphrase."
    )
    peer_name: str = Field(
        "",
        description="Name that the certificates of other nodes must have; empty for the host in "
        "the address. Needed for nodes found by dns:///, which are called by their IP addresses.",
    )

    @model_validator(mode="after")
    def _check_peers(self) -> Self:
        if (self.peer_cert is None) != (self.peer_key is None):
            raise ValueError("--peer-cert and --peer-key: give both, or neither")
        if self.peer_cert is not None and self.peer_ca is None:
            raise ValueError(
                "--peer-cert needs --peer-ca: without --peer-ca, nodes are called in plain text"
            )
        if self.peer_name and self.peer_ca is None:
            raise ValueError(
                "--peer-name needs --peer-ca: without --peer-ca, nodes are called in plain text"
            )
        return self
