"""`winnow read`."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from winnow.address import DEFAULT_ADDRESS
from winnow.cli.access import with_credentials
from winnow.cli.ask.render import notes_on_question, percent
from winnow.cli.options import FrontAddress, Timeout
from winnow.cli.output import HIGHLIGHT, console, print_json, printable
from winnow.cli.passages.place import run_at
from winnow.client import Credentials, ReadReply, TextReading
from winnow.client.aio import AsyncClientApi
from winnow.errors import WinnowError

_STDIN = Path("-")


@with_credentials
def read(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...", help="Text files to read; - for standard input.", show_default="-"
        ),
    ] = None,
    address: FrontAddress = DEFAULT_ADDRESS,
    answers: Annotated[int, typer.Option(min=1, max=1000, help="Answers to show.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    timeout: Timeout = 60.0,
    credentials: Credentials | None = None,
) -> None:
    """Read text files: find the words in them that answer a question. No index is needed.

    Example: winnow read "Who may travel by train?" policy.txt handbook.txt

    The server needs --reader-threads. `winnow up` and `winnow reader` have it.

    With --json, one object is printed, with the keys: has_answer, readings (index, id, text, start,
    end, sentence, score, relevance, confidence, …), best, report, request_id. The id of a reading
    is the name of its file.
    """
    if not files and Path(question).is_file():
        raise WinnowError(f"{question} is a file: write the question before it, in quotes")
    texts = {str(file): _content(file) for file in files or [_STDIN]}

    async def work(api: AsyncClientApi) -> ReadReply:
        passages = [{"id": name, "text": text} for name, text in texts.items()]
        return await api.read(question, passages, answers=answers, timeout=timeout)  # type: ignore[arg-type]

    reply = run_at(address, None, credentials, work)
    if as_json:
        print_json(reply)
        return
    shown = console()
    for line in render_reading(reply, list(texts.values()), plain=not shown.is_terminal):
        shown.print(line)


def render_reading(reply: ReadReply, texts: Sequence[str], *, plain: bool) -> Iterator[Text]:
    """Renders the best readings; without styles if `plain`."""
    yield from notes_on_question(reply.report.question_truncated, reply.report.unread_language)
    if not reply.has_answer:
        yield Text("no text has a likely answer", style="yellow")
    for number, reading in enumerate(reply.best, 1):
        yield Text(f"{number}. {printable(reading.text)}", "bold")
        yield _marked_sentence(reading, texts[reading.index], plain)
        sure = "" if reading.confidence is None else f"confidence {percent(reading.confidence)}, "
        place = f"{printable(reading.id)}, characters {reading.start} to {reading.end}"
        yield Text(f"{sure}{place}\n", style="dim")


def _marked_sentence(reading: TextReading, text: str, plain: bool) -> Text:
    """The sentence with the span highlighted; between asterisks if `plain`."""
    first, last = reading.sentence
    parts = (text[first : reading.start], reading.text, text[reading.end : last])
    before, span, after = (printable(part, lines=True) for part in parts)
    if plain:
        return Text(f"{before}**{span}**{after}")
    return Text.assemble(before, (span, HIGHLIGHT), after)


def _content(file: Path) -> str:
    """Returns the text of a file; raises WinnowError if it cannot be read as text."""
    if file == _STDIN and sys.stdin.isatty():
        console(stderr=True).print("reading standard input: end it with Ctrl-D")
    try:
        data = sys.stdin.buffer.read() if file == _STDIN else file.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise WinnowError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WinnowError(
            f"{file} is not text in UTF-8: convert it first, or index it with `winnow up "
            "--documents`"
        ) from error
