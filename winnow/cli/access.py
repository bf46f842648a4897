"""Options for the credentials of a command: certificates and a token.

A token is read from a file or a variable, never from the command line: every user of the machine
can read command lines.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow import signals
from winnow.cli.added_options import with_added_options
from winnow.errors import InvalidRequestError

if TYPE_CHECKING:
    from winnow.client import Credentials

TOKEN_VARIABLE = "WINNOW_TOKEN"  # noqa: S105 (a name)


def _credentials(
    *,
    tls: Annotated[
        bool,
        typer.Option(
            "--tls", envvar="WINNOW_TLS", help="Use TLS with gRPC's built-in authorities."
        ),
    ] = False,
    ca: Annotated[
        Path | None,
        typer.Option(
            envvar="WINNOW_CA",
            help="Use TLS. PEM file of the authorities that may sign the front node's certificate.",
            show_default="plain text",
        ),
    ] = None,
    cert: Annotated[
        Path | None,
        typer.Option(
            envvar="WINNOW_CERT",
            help="PEM file of your own certificate, if the front node requires one.",
            show_default="none",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            envvar="WINNOW_KEY", help="PEM file of the private key of --cert.", show_default="none"
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            envvar="WINNOW_TOKEN_FILE",
            help=f"File with your token, made by `winnow keys new`. {TOKEN_VARIABLE} can hold the "
            "token instead.",
            show_default="none",
        ),
    ] = None,
) -> "Credentials":
    with signals.importing():
        from winnow.client import Credentials  # noqa: PLC0415 (not for --help)

    token = "" if token_file else os.environ.get(TOKEN_VARIABLE, "").strip()
    try:
        return Credentials(tls=tls, ca=ca, cert=cert, key=key, token_file=token_file, token=token)
    except InvalidRequestError as error:
        violation = error.violations[0]
        raise typer.BadParameter(
            violation.description, param_hint=f"--{violation.field}"
        ) from error


def with_credentials(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the parameter `credentials` of a command by the options of `_credentials`."""
    return with_added_options("credentials", _credentials)(command)


def credential_flags(credentials: "Credentials") -> list[str]:
    """The command-line flags for these credentials, without the token itself."""
    words = ["--tls"] * credentials.tls
    for name in ("ca", "cert", "key", "token_file"):
        if (path := getattr(credentials, name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(path)]
    return words
