"""`winnow ask`."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Annotated

import typer
from rich.console import Console

from winnow.client import Client, Options, Reply
from winnow.domain.question import ReadScope, Retriever
from winnow.errors import WinnowError
from winnow.tools.ask.history import History, history_path
from winnow.tools.ask.prompt import converse
from winnow.tools.ask.render import shown
from winnow.tools.exits import FAILED, complain

_Answered = Callable[[str], bool]


def ask(
    question: Annotated[
        list[str] | None,
        typer.Argument(
            help="The question.", show_default="a prompt; or every line of standard input"
        ),
    ] = None,
    address: Annotated[
        str, typer.Option(help="HOST:PORT of a front node, or dns:///HOST:PORT of several.")
    ] = "127.0.0.1:8080",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print every reply as one line of JSON.")
    ] = False,
    passages_to_read: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Passages to read.", show_default="the server's"),
    ] = None,
    answers: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Answers wanted.", show_default="the server's"),
    ] = None,
    max_loss: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=100,
            help="Exact match, in percent, that stopping early may lose; 0 reads every passage.",
            show_default="the server's",
        ),
    ] = None,
    read_scope: Annotated[
        ReadScope | None,
        typer.Option(
            help="Read the best passages of the whole cluster, or of every shard.",
            show_default="the server's",
        ),
    ] = None,
    retriever: Annotated[
        Retriever | None,
        typer.Option(
            help="Find passages by encoding, or by encoding and words.",
            show_default="the server's",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Seconds until a question is given up.")
    ] = 10.0,
) -> None:
    """Ask a running cluster, and see the answer in its passage.

    Without a question: a prompt that ends with Ctrl-D or `exit`; or, where standard input is a
    file or a pipe, every line of it is a question.

    Keys of --json: question, answer (null if none is likely), has_answer, answers (text, start,
    end, score, passage with id, title, text and metadata, shard, relevance, span_score, distance,
    hybrid_distance), coverage (complete, known, searched, failed, shards with shard, passages,
    status and reason), timings (queue_ms, tokenise_ms, encode_ms, retrieve_ms, read_ms, merge_ms,
    total_ms, shards), passages_read, passages_asked, passages_granted, read_scope, request_id,
    question_truncated.

    Exit codes: 0 every question got a reply, even one without a likely answer; 1 one got none; 2
    wrong usage; 130 Ctrl-C.
    """
    options = Options(
        passages_to_read=passages_to_read,
        answers=answers,
        max_loss=max_loss,
        read_scope=read_scope,
        retriever=retriever,
    )
    with Client(address) as client:

        def answered(text: str) -> bool:
            return _answered(lambda: client.ask(text, timeout=timeout, **options), as_json)

        if question:
            replied = answered(" ".join(question))
        elif sys.stdin.isatty():
            replied = _converse(answered)
        else:
            replied = _answer_all(_lines(), answered)
    if not replied:
        raise typer.Exit(FAILED)


def _answered(asking: Callable[[], Reply], as_json: bool) -> bool:
    """Prints the reply, or why there is none."""
    try:
        reply = asking()
    except WinnowError as error:
        complain(error)
        return False
    if as_json:
        typer.echo(json.dumps(reply.as_dict()))
        return True
    console = Console(highlight=False)
    plain = not console.is_terminal
    console.print(shown(reply, console.width, plain), soft_wrap=plain)
    return True


def _answer_all(questions: Iterator[str], answered: _Answered) -> bool:
    """Answers every question, also after one that failed."""
    replied = [answered(question) for question in questions]
    if not replied:
        raise typer.BadParameter("standard input is empty", param_hint="QUESTION")
    return all(replied)


def _lines() -> Iterator[str]:
    return (line.strip() for line in sys.stdin if line.strip())


def _converse(answered: _Answered) -> bool:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        keep = History(history_path(os.environ)).keep
    except OSError as error:
        console.print(f"questions are not remembered: {error}", markup=False)
        converse(answered, console.print)
    else:
        converse(answered, console.print, keep)
    return True
