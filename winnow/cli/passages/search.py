"""`winnow search`."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

from winnow.address import DEFAULT_ADDRESS
from winnow.cli.access import with_credentials
from winnow.cli.options import (
    FilterOption,
    FrontAddress,
    IndexDirectory,
    NamedIndex,
    NamedTenant,
    RetrieverOption,
    Timeout,
    parse_positions,
)
from winnow.cli.output import HIGHLIGHT, console, print_json, printable
from winnow.cli.passages.place import run_at
from winnow.client import Credentials, FoundPassage, SearchOptions, SearchReply
from winnow.quoting import were


@with_credentials
def search(
    question: Annotated[list[str], typer.Argument(help="The question, or words to find.")],
    address: FrontAddress = DEFAULT_ADDRESS,
    index: IndexDirectory = None,
    on: NamedIndex = "",
    tenant: NamedTenant = "",
    passages: Annotated[int, typer.Option(min=1, max=100, help="Passages to show.")] = 5,
    retriever: RetrieverOption = None,
    where: FilterOption = "",
    after: Annotated[
        str,
        typer.Option(
            metavar="SHARD:SEQUENCE,...",
            help="Positions of writes that the passages must reflect, separated by commas.",
            show_default="none",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    timeout: Timeout = 10.0,
    credentials: Credentials | None = None,
) -> None:
    """Find the passages that are most likely to answer a question, without reading them.

    Example: winnow search "Who won the Tour de France in 2015?" --passages 3

    With --json, one object is printed, with the keys: passages (passage, score, distance,
    hybrid_distance, words, highlights, shard, source), coverage, request_id, question_truncated.
    """
    options: SearchOptions = {
        "passages": passages,
        "retriever": retriever,
        "where": where or None,
        "after": parse_positions(after),
    }
    words = " ".join(question)
    reply = run_at(
        address,
        index,
        credentials,
        lambda api: api.search(words, timeout=timeout, **options),
        on=on,
        tenant=tenant,
    )
    if as_json:
        print_json(reply)
        return
    shown = console()
    for line in render_search(reply, plain=not shown.is_terminal):
        shown.print(line)


def render_search(reply: SearchReply, *, plain: bool) -> Iterator[Text]:
    """Renders the passages of a search; without styles if `plain`."""
    if not reply.passages:
        yield Text("no passage was found")
    for number, found in enumerate(reply.passages, 1):
        yield Text(f"{number}. {printable(found.passage.title or found.passage.id)}", "bold")
        yield _highlighted(found, plain)
        source = f"{printable(found.source.citation)}, " if found.source else ""
        place = f"passage {printable(found.passage.id)}, shard {found.shard}"
        yield Text(f"{source}score {found.score:.3f}, {place}\n", style="dim")
    coverage = reply.coverage
    if not coverage.complete:
        missing = were(coverage.failed, "passage")
        yield Text(f"{missing} not searched, because shards failed", style="yellow")


def _highlighted(found: FoundPassage, plain: bool) -> Text:
    """The text with the words of the question highlighted; between asterisks if `plain`."""
    text = printable(found.passage.text, lines=True)
    if not plain:
        shown = Text(text)
        for start, end in found.highlights:
            shown.stylize(HIGHLIGHT, start, end)
        return shown
    parts, before = [], 0
    for start, end in found.highlights:
        parts += [text[before:start], "**", text[start:end], "**"]
        before = end
    return Text("".join([*parts, text[before:]]))
