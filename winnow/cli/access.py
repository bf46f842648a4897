"""The options by which a command proves to a front node who calls: certificates and a token.

A token stands in a file or in a variable, and never on a command line, which everybody on the
machine can read.
"""

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from winnow.client import Credentials
from winnow.errors import InvalidRequestError

TOKEN_VARIABLE = "WINNOW_TOKEN"  # noqa: S105 (a name)


def _credentials(
    *,
    tls: Annotated[
        bool,
        typer.Option("--tls", envvar="WINNOW_TLS", help="Use TLS, with well-known authorities."),
    ] = False,
    ca: Annotated[
        Path | None,
        typer.Option(
            envvar="WINNOW_CA",
            help="Use TLS: file of the authorities that may sign the front node's certificate.",
            show_default="plain text",
        ),
    ] = None,
    cert: Annotated[
        Path | None,
        typer.Option(
            envvar="WINNOW_CERT", help="File of your own certificate.", show_default="none"
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            envvar="WINNOW_KEY", help="File of the private key of --cert.", show_default="none"
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
) -> Credentials:
    token = "" if token_file else os.environ.get(TOKEN_VARIABLE, "").strip()
    try:
        return Credentials(tls=tls, ca=ca, cert=cert, key=key, token_file=token_file, token=token)
    except InvalidRequestError as error:
        violation = error.violations[0]
        raise typer.BadParameter(
            violation.description, param_hint=f"--{violation.field}"
        ) from error


def with_credentials(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options above in place of its parameter `credentials`."""
    added = list(inspect.signature(_credentials).parameters.values())
    given = inspect.signature(command).parameters.values()
    own = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in given
        if each.name != "credentials"
    ]

    @functools.wraps(command)
    def wrapped(**options: Any) -> None:
        credentials = _credentials(**{each.name: options.pop(each.name) for each in added})
        command(**options, credentials=credentials)

    wrapped.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in (*own, *added)}
    return wrapped


def flags(credentials: Credentials) -> list[str]:
    """The words of a command line that give the same credentials again, without a token."""
    words = ["--tls"] * credentials.tls
    for name in ("ca", "cert", "key", "token_file"):
        if (path := getattr(credentials, name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(path)]
    return words
