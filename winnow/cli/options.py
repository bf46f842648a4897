"""Options that several commands share, and checks of their values."""

import re
from pathlib import Path
from typing import Annotated

import typer

from winnow import signals
from winnow.domain.answer_size import AnswerSize
from winnow.domain.catalog import check_name
from winnow.domain.question import ReadScope, Retriever
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError

_POSITION = re.compile(r"(\d{1,9}):(\d{1,18})")


def _check_address(address: str) -> str:
    with signals.importing():
        from winnow.client.channels import check_address  # noqa: PLC0415 (not for --help)

    try:
        check_address(address)
    except InvalidRequestError as error:
        raise typer.BadParameter(error.violations[0].description) from error
    return address


def check_index_name(name: str) -> str:
    """Returns the name of an index, which may be empty; raises BadParameter if it is invalid."""
    try:
        if name:
            check_name(name)
    except InvalidRequestError as error:
        raise typer.BadParameter(error.violations[0].description) from error
    return name


def _parse_directory(text: str) -> Path:
    """Parses a directory. An empty text is an error: it would mean the working directory."""
    if not text.strip():
        raise typer.BadParameter("expected a directory, not an empty text")
    return Path(text)


FrontAddress = Annotated[
    str,
    typer.Option(
        help="HOST:PORT of a front node, or dns:///HOST:PORT of several.", callback=_check_address
    ),
]
IndexDirectory = Annotated[
    Path | None,
    typer.Option(
        parser=_parse_directory,
        metavar="DIRECTORY",
        help="Directory of an index to open in this process, instead of asking a front node.",
        show_default="none",
    ),
]
CatalogUrl = Annotated[
    str,
    typer.Option(
        "--indexes",
        envvar="WINNOW_INDEXES",
        help="File or URL of the catalog: the --indexes of the front nodes and content nodes.",
    ),
]
NamedIndex = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="NAME",
        help="Name of the index on the cluster, or an alias of it.",
        show_default="the default index",
        callback=check_index_name,
    ),
]
NamedTenant = Annotated[
    str,
    typer.Option(
        "--tenant",
        metavar="TENANT",
        help="Tenant of the passages, in an index with tenants. A key of a tenant decides it.",
        show_default="that of the key",
    ),
]
PassagesToRead = Annotated[
    int, typer.Option(min=1, max=100, help="Passages to read for each question.")
]
Timeout = Annotated[
    float,
    typer.Option(
        min=0.001,
        max=3600,
        envvar="WINNOW_TIMEOUT",
        help="Seconds until a request is given up.",
    ),
]
Patience = Annotated[
    float,
    typer.Option(
        min=0,
        help="Seconds in which a request must succeed, with its retries. 0 sends it once, and "
        "waits for --timeout.",
    ),
]
ReadScopeOption = Annotated[
    ReadScope | None,
    typer.Option(
        case_sensitive=False,
        help="Read the best passages of the whole cluster, or of each shard.",
        show_default="the server's",
    ),
]
RetrieverOption = Annotated[
    Retriever | None,
    typer.Option(
        case_sensitive=False,
        help="Find passages by meaning (dense), by words (sparse), or by both (hybrid).",
        show_default="the server's",
    ),
]
MaxLoss = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=100,
        help="Accuracy budget for early stopping, in points of exact match (0-100). 0 disables it.",
        show_default="the server's",
    ),
]
AnswerSizeOption = Annotated[
    AnswerSize | None,
    typer.Option(
        case_sensitive=False,
        help="What to show of an answer: its words (span), its sentence or list item (sentence), "
        "or its passage (passage). auto chooses the span or the sentence.",
        show_default="the server's",
    ),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Minimum confidence of an answer (0-1). Below it, no answer is shown.",
        show_default="the server's",
    ),
]
FilterOption = Annotated[
    str,
    typer.Option(
        metavar="FILTER",
        help="Answer only from passages whose metadata matches, for example 'year >= 2010 and "
        'lang = "en"\'. Operators: = != < <= > >=, in (..), exists, and, or, not, parentheses. '
        "Quote strings and dates.",
        show_default="all passages",
    ),
]


def check_max_loss(
    max_loss: float | None, read_scope: ReadScope | None, retriever: Retriever | None = None
) -> None:
    """Raises BadParameter if the scope or the retriever does not support early stopping."""
    hybrid = retriever in (None, Retriever.HYBRID)
    if max_loss and (not hybrid or read_scope is ReadScope.PER_SHARD):
        raise typer.BadParameter("--max-loss needs hybrid retrieval and the global scope")


def split_commas(option: str) -> list[str]:
    """Splits an option at commas, and drops blank values."""
    return [each.strip() for each in option.split(",") if each.strip()]


def parse_positions(option: str) -> list[Position]:
    """Parses positions SHARD:SEQUENCE, separated by commas.

    Raises typer.BadParameter if a position is invalid.
    """
    parsed = []
    for text in split_commas(option):
        match = _POSITION.fullmatch(text)
        if match is None:
            raise typer.BadParameter(
                f"{text!r} is not SHARD:SEQUENCE, such as 0:17", param_hint="--after"
            )
        parsed.append(Position(int(match[1]), int(match[2])))
    return parsed
