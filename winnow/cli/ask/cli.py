"""`winnow ask`."""

from typing import TYPE_CHECKING, Annotated

import typer

from winnow import signals
from winnow.address import DEFAULT_ADDRESS
from winnow.cli.access import with_credentials
from winnow.cli.exits import FAILED
from winnow.cli.options import (
    AnswerSizeOption,
    FilterOption,
    FrontAddress,
    IndexDirectory,
    MaxLoss,
    MinConfidence,
    NamedIndex,
    NamedTenant,
    ReadScopeOption,
    RetrieverOption,
    Timeout,
    parse_positions,
    split_commas,
)

if TYPE_CHECKING:
    from winnow.client import Credentials, Options


@with_credentials
def ask(
    question: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUESTION",
            help="The question, quoted or not; - for standard input.",
            show_default="a prompt, or standard input",
        ),
    ] = None,
    address: FrontAddress = DEFAULT_ADDRESS,
    index: IndexDirectory = None,
    on: NamedIndex = "",
    tenant: NamedTenant = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print every reply as one line of JSON.")
    ] = False,
    timings: Annotated[
        bool,
        typer.Option(
            "--timings",
            help="Show when each stage, each call to a shard and each read ran. --json always "
            "includes these times.",
        ),
    ] = False,
    passages_to_read: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Passages to read.", show_default="the server's"),
    ] = None,
    answers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            help="Maximum number of answers; fewer if reading stops early.",
            show_default="the server's",
        ),
    ] = None,
    max_loss: MaxLoss = None,
    read_scope: ReadScopeOption = None,
    retriever: RetrieverOption = None,
    answer_size: AnswerSizeOption = None,
    min_confidence: MinConfidence = None,
    where: FilterOption = "",
    heads: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HEAD,...",
            help="Ids of heads to apply to the question, separated by commas. May be repeated.",
            show_default="none",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Read passages even if the answer is cached.")
    ] = False,
    after: Annotated[
        str,
        typer.Option(
            metavar="SHARD:SEQUENCE,...",
            help="Positions of writes that the answer must include, separated by commas. Clients "
            "get a position for each write.",
            show_default="none",
        ),
    ] = "",
    timeout: Timeout = 10.0,
    credentials: "Credentials | None" = None,
) -> None:
    """Ask a running cluster, or an index (--index), and see the answer in its passage.

    Without a question, the command shows a prompt. Ctrl-D or `exit` ends the prompt; Ctrl-C gives
    up a question. If standard input is a file or a pipe, each line of it is a question.

    With --json, every reply is one line with the keys:
      question, answer (null if none is likely), has_answer, request_id,
      answers: text, start, end, score, relevance, span_score, distance,
        hybrid_distance, words, confidence, shard,
        passage (id, title, text, metadata),
        source (document, page, headings, url, start, end; null without one),
        sentence_start, sentence_end, sentence_confidence,
        size (span, sentence or passage), shown_text,
      coverage: complete, known, searched, failed,
        shards (shard, passages, status, reason, sequence),
      timings: queue_ms, tokenise_ms, encode_ms, retrieve_ms, read_ms,
        merge_ms, total_ms, shards (shard, queue_ms, retrieve_ms, read_ms),
        retrieve_start_ms, read_start_ms, merge_start_ms,
        calls (shard, kind, outcome, start_ms, ms, retrieve_start_ms,
        retrieve_ms, reads (passage_id, start_ms, ms)),
      passages_read, passages_asked, passages_granted, read_scope,
      question_truncated, unread_language, cached, passages_needed, max_loss,
      index, generation (both null without named indexes),
      heads: head_id, version, failure, out_of_scope,
        labels (label, score, assigned),
        entities (label, text, start, end, score).

    Exit codes:
      0 every question got a reply, even one without a likely answer
      1 a question got no reply; stderr says why. A prompt exits with 0
      2 wrong usage
      130 Ctrl-C, except at a prompt
    """
    with signals.importing():
        from winnow.cli.ask.answering import (  # noqa: PLC0415
            answer_questions,
            cluster_asker,
            index_asker,
        )

    options: Options = {
        "passages_to_read": passages_to_read,
        "answers": answers,
        "max_loss": max_loss,
        "read_scope": read_scope,
        "retriever": retriever,
        "answer_size": answer_size,
        "min_confidence": min_confidence,
        "where": where,
        "heads": split_commas(",".join(heads or ())),
        "fresh": fresh,
        "after": parse_positions(after),
    }
    if index is not None and on:
        raise typer.BadParameter("a directory holds one index: omit --on", param_hint="--on")
    asker = (
        cluster_asker(address, credentials, timeout, options, on=on, tenant=tenant)
        if index is None
        else index_asker(index, timeout, options, tenant=tenant)
    )
    with asker as ask_one:
        replied = answer_questions(ask_one, question, as_json=as_json, timings=timings)
    if not replied:
        raise typer.Exit(FAILED)
