"""`winnow predict`."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.console import Console
from rich.text import Text

from winnow import signals
from winnow.address import DEFAULT_ADDRESS
from winnow.cli.access import with_credentials
from winnow.cli.exits import FAILED, print_error
from winnow.cli.options import Timeout, split_commas
from winnow.cli.output import console, print_json, printable, replace_unencodable_characters
from winnow.cli.predict.batches import Ask, batches, predict_batch
from winnow.cli.predict.render import render_predictions
from winnow.client import AsyncClient, Credentials, Predictions, TextPrediction
from winnow.errors import WinnowError
from winnow.quoting import quoted
from winnow.telemetry.progress import StageProgress

_STDIN = Path("-")


@with_credentials
def predict(
    text: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT",
            help="The text, quoted or not.",
            show_default="the lines of --file, or of standard input",
        ),
    ] = None,
    heads: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HEAD,...",
            help="Ids of the heads to apply, separated by commas. May be repeated.",
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="File with one text a line; - for standard input.")
    ] = None,
    address: Annotated[
        str, typer.Option(help="HOST:PORT of a front node, or dns:///HOST:PORT of several.")
    ] = DEFAULT_ADDRESS,
    ring: Annotated[
        str,
        typer.Option(
            help="Encoder group that holds the heads.", show_default="the server's default"
        ),
    ] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for each text.")
    ] = False,
    timeout: Timeout = 10.0,
    credentials: Credentials | None = None,
) -> None:
    """Predict labels and entities of texts with heads on a running front node.

    Example: winnow predict "book me a flight to Oslo" --heads intent,entities

    With --json, there is one line for each text, with the keys:
      text, truncated,
      heads: head_id, version, failure, out_of_scope,
        labels (label, score, assigned),
        entities (label, text, start, end, score).

    Exit codes:
      0 every text has its predictions
      1 a text has no predictions; stderr says why
      2 wrong usage
      130 Ctrl-C
    """
    ids = split_commas(",".join(heads or ()))
    if not ids:
        raise typer.BadParameter("name at least one head", param_hint="--heads")
    if text and file is not None:
        raise typer.BadParameter("give a text or a file, not both", param_hint="--file")
    replace_unencodable_characters()

    async def request(texts: Sequence[str]) -> Predictions:
        async with AsyncClient(address, credentials=credentials) as client:
            return await client.predict(list(texts), ids, ring=ring, timeout=timeout)

    def ask(texts: Sequence[str]) -> Predictions:
        return signals.run(request(texts))

    def show(results: Sequence[TextPrediction]) -> None:
        for each in results:
            if as_json:
                print_json(each.as_dict(), indent=None)
            else:
                _show(each, repeat=not text)

    if text:
        show(ask([" ".join(text)]).results)
    elif not _predict_lines(file, ask, show):
        raise typer.Exit(FAILED)


def _predict_lines(
    file: Path | None, ask: Ask, show: Callable[[Sequence[TextPrediction]], None]
) -> bool:
    """Predicts each line that is not blank; returns whether the server accepted all of them."""
    count = refusals = 0

    def report_refusal(line: str, reason: str) -> None:
        nonlocal refusals
        refusals += 1
        print_error(f"{quoted(line)} {reason}")

    with _open_lines(file) as lines, _progress(file) as progress:
        progress.start("predict", None)
        for batch in batches(each.strip() for each in lines if each.strip()):
            show(predict_batch(batch, ask, report_refusal))
            count += len(batch)
            progress.advance(len(batch))
    if not count:
        raise typer.BadParameter("there is no text", param_hint="TEXT")
    return not refusals


def _show(result: TextPrediction, repeat: bool) -> None:
    """Prints the predictions for a text, after the text itself if `repeat`."""
    out = console()
    plain = not out.is_terminal
    if repeat:
        out.print(Text(f"> {printable(result.text)}", style="bold"), soft_wrap=True)
    for line in render_predictions(result.text, result.heads, out.width, plain):
        out.print(line, soft_wrap=plain)
    if result.truncated:
        out.print(Text("the text was too long: its end was not used", style="yellow"))
    if repeat:
        out.print()


@contextlib.contextmanager
def _open_lines(file: Path | None) -> Iterator[IO[str]]:
    if file is None or file == _STDIN:
        if file is None and sys.stdin.isatty():
            raise typer.BadParameter("there is no text", param_hint="TEXT")
        yield sys.stdin
        return
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            yield stream
    except OSError as error:
        raise WinnowError(f"cannot read {file}: {error.strerror}") from error


@contextlib.contextmanager
def _progress(file: Path | None) -> Iterator[StageProgress]:
    """Shows progress through a file, unless stdout is a terminal or texts come from stdin."""
    quiet = file is None or file == _STDIN or sys.stdout.isatty()
    with StageProgress(Console(stderr=True, quiet=quiet, highlight=False)) as progress:
        yield progress
