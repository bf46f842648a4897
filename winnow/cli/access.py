"""The options by which every tool that asks proves who it is: certificates and a token.

A token stands in a file or in a variable, and never among the words of a command line, which
everybody on the machine can read.
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

_OPTIONS: dict[str, Any] = {
    "tls": Annotated[
        bool,
        typer.Option("--tls", envvar="WINNOW_TLS", help="Use TLS, with well-known authorities."),
    ],
    "ca": Annotated[
        Path | None,
        typer.Option(
            envvar="WINNOW_CA",
            help="Use TLS: file of the authorities that the front node's certificate may be from.",
            show_default="plain text",
        ),
    ],
    "cert": Annotated[
        Path | None,
        typer.Option(
            envvar="WINNOW_CERT", help="File of your own certificate.", show_default="none"
        ),
    ],
    "key": Annotated[
        Path | None,
        typer.Option(
            envvar="WINNOW_KEY", help="File of the private key of --cert.", show_default="none"
        ),
    ],
    "token_file": Annotated[
        Path | None,
        typer.Option(
            envvar="WINNOW_TOKEN_FILE",
            help=f"File with your token, made by `winnow keys new`; or set {TOKEN_VARIABLE} to it.",
            show_default="none",
        ),
    ],
}
_DEFAULTS: dict[str, Any] = {"tls": False}


def with_credentials(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command these options in place of its argument `credentials`."""
    signature = inspect.signature(command)
    own = [each for name, each in signature.parameters.items() if name != "credentials"]
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_DEFAULTS.get(name),
            annotation=annotation,
        )
        for name, annotation in _OPTIONS.items()
    ]

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        credentials = _settled({name: given.pop(name) for name in _OPTIONS})
        command(**given, credentials=credentials)

    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    wrapped.__signature__ = signature.replace(parameters=[*named, *added])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in (*named, *added)}
    return wrapped


def _settled(options: dict[str, Any]) -> Credentials:
    token = "" if options["token_file"] else os.environ.get(TOKEN_VARIABLE, "")
    try:
        return Credentials(**options, token=token.strip())
    except InvalidRequestError as error:
        violation = error.violations[0]
        raise typer.BadParameter(
            violation.description, param_hint=f"--{violation.field}"
        ) from error


def flags(credentials: Credentials) -> list[str]:
    """The words of a command line that give the same credentials again, without a token."""
    words = ["--tls"] * credentials.tls
    for name in ("ca", "cert", "key", "token_file"):
        if (path := getattr(credentials, name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(path)]
    return words
