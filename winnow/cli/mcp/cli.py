"""`winnow mcp`."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from winnow import signals
from winnow.address import DEFAULT_ADDRESS
from winnow.cli.access import with_credentials
from winnow.cli.options import FrontAddress, IndexDirectory, NamedIndex, NamedTenant, Timeout
from winnow.cli.output import console
from winnow.client import Credentials
from winnow.errors import UnavailableError
from winnow.packaged import extra


@with_credentials
def mcp(
    address: FrontAddress = DEFAULT_ADDRESS,
    index: IndexDirectory = None,
    on: NamedIndex = "",
    tenant: NamedTenant = "",
    documents: Annotated[
        Path | None,
        typer.Option(
            help="Folder of documents to index and serve, as `winnow up --documents` does.",
            show_default="none",
        ),
    ] = None,
    timeout: Timeout = 20.0,
    credentials: Credentials | None = None,
) -> None:
    """Serve an index to an agent: the Model Context Protocol on standard input and output.

    Example: winnow mcp --documents FOLDER

    An agent's program starts this command. Its tools are ask, search, fetch and read; documents
    and passages are resources. Without --index and --documents, it calls a front node. Needs the
    extra `mcp`.
    """
    if index is not None and documents is not None:
        raise typer.BadParameter("give --index or --documents, not both", param_hint="--index")
    if on and (index is not None or documents is not None):
        raise typer.BadParameter("only a front node has named indexes", param_hint="--on")
    if find_spec("mcp") is None:
        raise UnavailableError(f"agents need the extra `mcp`: {extra('mcp')}")
    with signals.importing():
        from winnow.cli.mcp import sources  # noqa: PLC0415
        from winnow.cli.mcp.serving import serve_stdio  # noqa: PLC0415 (not for --help)

    if sys.stdin.isatty():
        console(stderr=True).print(
            "waiting for the messages of an agent: its program usually starts this command "
            "(docs/agents.md); Ctrl-C ends it"
        )
    source: sources.AgentSource
    if documents is not None:
        source = sources.DocumentsSource(documents, credentials)
    elif index is not None:
        source = sources.IndexSource(index, tenant)
    else:
        source = sources.FrontSource(address, credentials, on, tenant)
    signals.run(serve_stdio(source, timeout))
