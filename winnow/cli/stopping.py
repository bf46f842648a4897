"""The option `--max-loss` of every command that asks: what stopping early may lose."""

from typing import Annotated

import typer

from winnow.domain.question import ReadScope, Retriever

MaxLoss = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=100,
        help="Exact match, in percent, that stopping early may lose: 0 to 100. 0 reads every "
        "passage.",
        show_default="the server's",
    ),
]


def check_max_loss(
    max_loss: float | None, read_scope: ReadScope | None, retriever: Retriever | None = None
) -> None:
    """Raises BadParameter if reading never stops early in this scope, or with this retriever."""
    hybrid = retriever in (None, Retriever.HYBRID)
    if max_loss and (not hybrid or read_scope is ReadScope.PER_SHARD):
        raise typer.BadParameter("--max-loss needs hybrid retrieval and the global scope")
