"""Options for the certificates with which a command calls content nodes."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from winnow.cli.added_options import with_added_options
from winnow.errors import InvalidRequestError, invalid_field
from winnow.security.certificates import Certificates, TlsFiles
from winnow.security.peers import PLAIN_TEXT, PeerChannels


def _peers(
    *,
    peer_ca: Annotated[
        Path | None,
        typer.Option(
            help="PEM file of the authorities that must have signed the nodes' certificates.",
            show_default="plain text",
        ),
    ] = None,
    peer_cert: Annotated[
        Path | None,
        typer.Option(
            help="PEM file of the certificate with which nodes are called.", show_default="none"
        ),
    ] = None,
    peer_key: Annotated[
        Path | None,
        typer.Option(help="PEM file of the private key of --peer-cert.", show_default="none"),
    ] = None,
    peer_name: Annotated[
        str,
        typer.Option(help="Name that the certificates of nodes must have.", show_default="host"),
    ] = "",
) -> PeerChannels:
    if peer_ca is None:
        if peer_cert is not None or peer_key is not None or peer_name:
            raise InvalidRequestError(*invalid_field("--peer-ca", "is missing").violations)
        return PLAIN_TEXT
    return PeerChannels(Certificates(TlsFiles(cert=peer_cert, key=peer_key, ca=peer_ca)), peer_name)


def with_peers(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the parameter `peers` of a command by the options of `_peers`."""
    return with_added_options("peers", _peers)(command)
