"""`winnow passages`: get, list, count, documents, export, delete."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from winnow.address import DEFAULT_ADDRESS
from winnow.cli.access import with_credentials
from winnow.cli.exits import FAILED
from winnow.cli.options import FrontAddress, IndexDirectory, NamedIndex, NamedTenant, Timeout
from winnow.cli.output import AsJson, console, print_json, printable, table
from winnow.cli.passages.exporting import STANDARD_OUTPUT, export, opened_for_writing, pause
from winnow.cli.passages.place import run_at
from winnow.cli.retrying import RetryMessages
from winnow.client import Credentials, Passage, StoredDocument
from winnow.client.aio import AsyncClientApi
from winnow.client.feeding import DEFAULT_FEED_ADDRESS
from winnow.quoting import many, were

app = typer.Typer(no_args_is_help=True)
_WIDTH = 60
"""Characters of a text that a list shows."""
_HASH = 12
"""Characters of a checksum that a list shows."""
_Where = Annotated[
    str,
    typer.Option(
        metavar="FILTER",
        help="Only passages whose metadata matches, for example 'year >= 2010'. The syntax is that "
        "of `winnow ask --where`.",
        show_default="all passages",
    ),
]


@app.command()
@with_credentials
def get(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of passages.")],
    address: FrontAddress = DEFAULT_ADDRESS,
    index: IndexDirectory = None,
    on: NamedIndex = "",
    tenant: NamedTenant = "",
    as_json: AsJson = False,
    timeout: Timeout = 10.0,
    credentials: Credentials | None = None,
) -> None:
    """Show passages by their ids.

    Example: winnow passages get policy.pdf#4

    With --json, a list of objects is printed, with the keys id, title, text, metadata.

    Exit codes:
      0 every passage was found
      1 a passage was not found; stderr names it
      2 wrong usage
    """
    found = run_at(
        address,
        index,
        credentials,
        lambda api: api.get_passages(ids, timeout=timeout),
        on=on,
        tenant=tenant,
    )
    passages = [found[each] for each in dict.fromkeys(ids) if each in found]
    if as_json:
        print_json(passages)
    for passage in () if as_json else passages:
        shown = console()
        shown.print(Text(printable(passage.title or passage.id), "bold"))
        shown.print(Text(printable(passage.text, lines=True)))
        if passage.metadata:
            shown.print(Text(printable(str(dict(passage.metadata))), "dim"))
        shown.print(Text(f"passage {printable(passage.id)}\n", "dim"))
    if missing := [each for each in dict.fromkeys(ids) if each not in found]:
        typer.echo(f"not found: {', '.join(map(printable, missing))}", err=True)
        raise typer.Exit(FAILED)


@app.command("list")
@with_credentials
def list_(
    where: _Where = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Passages to show.")] = 20,
    page_token: Annotated[
        str, typer.Option(help="Token of the page, as the previous page printed it.")
    ] = "",
    address: FrontAddress = DEFAULT_ADDRESS,
    index: IndexDirectory = None,
    on: NamedIndex = "",
    tenant: NamedTenant = "",
    as_json: AsJson = False,
    timeout: Timeout = 10.0,
    credentials: Credentials | None = None,
) -> None:
    """List passages in the order of their ids.

    Example: winnow passages list --where 'document = "policy.pdf"'

    With --json, an object is printed, with the keys passages (id, title, text, metadata) and
    next_page_token. `winnow passages export` writes all passages.
    """

    async def work(api: AsyncClientApi) -> tuple[list[Passage], str]:
        passages, token = list[Passage](), page_token
        while True:
            page = await api.list_page(
                token, page_size=limit - len(passages), where=where or None, timeout=timeout
            )
            passages += page.passages
            token = page.next_page_token
            if not token or len(passages) >= limit:
                return passages, token

    passages, token = run_at(address, index, credentials, work, on=on, tenant=tenant)
    if as_json:
        print_json({"passages": passages, "next_page_token": token})
        return
    rows = [[printable(each.id), printable(each.title), _beginning(each.text)] for each in passages]
    console().print(table(["id", "title", "text"], rows, words={"title", "text"}))
    if token:
        typer.echo(f"more passages follow: --page-token {token}")


@app.command()
@with_credentials
def count(
    where: _Where = "",
    address: FrontAddress = DEFAULT_ADDRESS,
    index: IndexDirectory = None,
    on: NamedIndex = "",
    tenant: NamedTenant = "",
    timeout: Timeout = 10.0,
    credentials: Credentials | None = None,
) -> None:
    """Print the number of passages.

    Example: winnow passages count --where 'lang = "en"'
    """
    count = run_at(
        address,
        index,
        credentials,
        lambda api: api.count_passages(where or None, timeout=timeout),
        on=on,
        tenant=tenant,
    )
    typer.echo(count)


@app.command()
@with_credentials
def documents(
    where: _Where = "",
    address: FrontAddress = DEFAULT_ADDRESS,
    index: IndexDirectory = None,
    on: NamedIndex = "",
    tenant: NamedTenant = "",
    as_json: AsJson = False,
    timeout: Timeout = 10.0,
    credentials: Credentials | None = None,
) -> None:
    """List the documents of an index: the values of the metadata field document.

    A document is complete if it has as many passages as expected. With --json, a list of objects is
    printed, with the keys name, passages, hash (document_hash of its passages) and expected
    (document_passages).
    """

    async def work(api: AsyncClientApi) -> list[StoredDocument]:
        return [each async for each in api.list_documents(where or None, timeout=timeout)]

    found = run_at(address, index, credentials, work, on=on, tenant=tenant)
    if as_json:
        print_json(found)
        return
    rows = (
        [
            printable(each.name),
            f"{each.passages:,}",
            "" if each.expected is None else f"{each.expected:,}",
            printable(each.hash[:_HASH]),
        ]
        for each in found
    )
    console().print(table(["document", "passages", "expected", "hash"], rows, words={"hash"}))


@app.command("export")
@with_credentials
def export_(
    file: Annotated[
        Path, typer.Argument(help="File to write; - for standard output.")
    ] = STANDARD_OUTPUT,
    where: _Where = "",
    address: FrontAddress = DEFAULT_ADDRESS,
    index: IndexDirectory = None,
    on: NamedIndex = "",
    tenant: NamedTenant = "",
    timeout: Timeout = 30.0,
    credentials: Credentials | None = None,
) -> None:
    """Write passages as JSON lines, which `winnow index build --passages` reads.

    Example: winnow passages export passages.jsonl

    Questions are answered and passages are written meanwhile. A passage that stays in the index is
    exported exactly once. A page that fails is requested again.
    """

    async def work(api: AsyncClientApi) -> int:
        with opened_for_writing(file) as opened:
            on_retry = RetryMessages().show
            return await export(api, opened, where or None, timeout, pause, on_retry=on_retry)

    count = run_at(address, index, credentials, work, on=on, tenant=tenant)
    typer.echo(f"{were(count, 'passage')} exported", err=True)


@app.command()
@with_credentials
def delete(
    where: Annotated[
        str,
        typer.Option(
            metavar="FILTER",
            help="Delete the passages whose metadata matches.",
            show_default="none",
        ),
    ] = "",
    document: Annotated[
        str,
        typer.Option(help="Delete the passages of this document.", show_default="none"),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the passages.")] = False,
    address: FrontAddress = DEFAULT_FEED_ADDRESS,
    on: NamedIndex = "",
    tenant: NamedTenant = "",
    as_json: AsJson = False,
    timeout: Timeout = 30.0,
    credentials: Credentials | None = None,
) -> None:
    """Delete the passages that match a filter, or those of a document.

    Example: winnow passages delete --document policy.pdf --dry-run

    The address is that of a front node's --feed-listen. `winnow feed --delete` deletes passages by
    their ids. It is safe to repeat an interrupted deletion. With --json, an object is printed, with
    the keys matched, deleted, complete and positions.
    """
    if bool(where) == bool(document):
        raise typer.BadParameter("give either --where or --document")
    done = run_at(
        address,
        None,
        credentials,
        lambda api: api.delete_where(where, document=document, dry_run=dry_run, timeout=timeout),
        on=on,
        tenant=tenant,
    )
    if as_json:
        print_json(done)
    elif dry_run:
        typer.echo(f"{many(done.matched, 'passage')} would be deleted")
    else:
        typer.echo(f"{were(done.deleted, 'passage')} deleted")


def _beginning(text: str) -> str:
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= _WIDTH else f"{shown[: _WIDTH - 1]}…"
