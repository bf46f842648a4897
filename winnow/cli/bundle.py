"""`winnow bundle`: push, pull."""

from pathlib import Path
from typing import Annotated

import typer

from winnow.bundle import Bundle
from winnow.bundle.publishing import pull_bundle, push_bundle
from winnow.quoting import shown
from winnow.settings.values import BUNDLE_HELP, parse_bundle_directory, parse_directory_or_url

app = typer.Typer(no_args_is_help=True)

_Url = Annotated[
    str,
    typer.Argument(
        parser=parse_directory_or_url,
        metavar="URL",
        help="Directory of the published bundle, or its URL, such as s3://models/mini.",
    ),
]


@app.command()
def push(
    directory: Annotated[
        Path, typer.Argument(parser=parse_bundle_directory, metavar="BUNDLE", help=BUNDLE_HELP)
    ],
    url: _Url,
) -> None:
    """Publish a bundle: verify it, and copy it to a directory or URL.

    A published bundle never changes. Publish another bundle to another URL.
    """
    typer.echo(f"{shown(url)}: {_describe(push_bundle(directory, url))}")


@app.command()
def pull(
    url: _Url, directory: Annotated[Path, typer.Argument(help="Directory to copy the bundle to.")]
) -> None:
    """Copy a published bundle to a local directory, unless it is there already.

    Every checksum is verified. The directory appears only when all files have been copied.
    """
    pulled = pull_bundle(url, directory)
    line = f"{directory}: {_describe(pulled.bundle)}"
    if pulled.unreachable:
        line += f" is there already, but could not be compared: {pulled.unreachable}"
    elif not pulled.copied:
        line += " is there already"
    typer.echo(line)


def _describe(bundle: Bundle) -> str:
    manifest = bundle.manifest
    return f"bundle {manifest.name} {manifest.version}, {manifest.fingerprint}"
