"""Renders a reply for a terminal or a pipe. Pure."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from winnow.cli.ask.timeline import render_timeline
from winnow.cli.output import HIGHLIGHT, printable
from winnow.cli.predict.render import render_predictions
from winnow.client import Answer, Coverage, Reply, ShardStatus, Source
from winnow.quoting import many, were

_MAX_SHARDS = 8
_LOW, _HIGH = 0.01, 0.99


def render_reply(reply: Reply, width: int, plain: bool, timings: bool = False) -> Group:
    """Renders all parts of a reply in `width` columns; without frames and styles if `plain`.

    `timings`: whether to show when each stage, each call to a shard and each read ran.
    """
    parts: list[RenderableType] = []
    for part in (
        _best_answer(reply, plain),
        _candidates(reply),
        render_predictions(reply.question, reply.heads, width, plain),
        _notes(reply),
        _cost(reply),
        render_timeline(reply.timings, width) if timings else (),
    ):
        lines = list(part)
        if lines:
            parts += [*([Text()] if parts else []), *lines]
    return Group(*parts)


def _best_answer(reply: Reply, plain: bool) -> Iterator[RenderableType]:
    """The best answer in a frame, and its passage; or a line that says that no answer is likely."""
    if reply.answer is None:
        yield Text("no answer is likely", style="bold yellow")
        return
    best = reply.answers[0]
    words = Text(printable(best.shown_text, lines=True), style="bold green")
    yield words if plain else Panel(words, padding=(1, 4), expand=False)
    yield Text()
    if best.passage.title:
        yield Text(printable(best.passage.title), style="bold")
    yield highlight_answer(best, plain)
    confidence = "" if best.confidence is None else f"confidence {percent(best.confidence)}, "
    if best.source is not None:
        yield Text(printable(_citation(best.source)))
    place = f"passage {printable(best.passage.id)}, shard {best.shard}"
    yield Text(f"{confidence}score {best.score:.2f}, {place}", style="dim")


def _citation(source: Source) -> str:
    """The document with the place in it, and its web address if it has one."""
    return f"{source.citation} ({source.url})" if source.url else source.citation


def highlight_answer(answer: Answer, plain: bool) -> Text:
    """The passage with the answer highlighted; between asterisks if `plain`."""
    words = printable(answer.passage.text, lines=True)
    if answer.start >= answer.end:
        return Text(words)
    before, after = words[: answer.start], words[answer.end :]
    mark, style = ("**", "") if plain else ("", HIGHLIGHT)
    return Text.assemble(before, mark, (words[answer.start : answer.end], style), mark, after)


def _candidates(reply: Reply) -> Iterator[Text]:
    """The answers after the best one; all of them if no answer is likely."""
    likely = reply.answer is not None
    others = reply.answers[1:] if likely else reply.answers
    if others:
        yield Text("other candidates" if likely else "candidates", style="dim")
    for answer in others:
        yield _candidate(answer)


def _candidate(answer: Answer) -> Text:
    title = printable(answer.source.citation if answer.source else answer.passage.title)
    score = f"score {answer.score:.2f}"
    rated = score if answer.confidence is None else f"{percent(answer.confidence):>5}"
    return Text.assemble(
        (f"{rated}  ", "dim"),
        (printable(answer.shown_text) or "(no words)", "bold"),
        (f"  {title}" if title else "", "dim"),
    )


def percent(confidence: float) -> str:
    """Formats a probability in whole percent, never as 0 % or 100 %."""
    if confidence > _HIGH:
        return f">{_HIGH:.0%}"
    return f"{confidence:.0%}" if confidence >= _LOW else f"<{_LOW:.0%}"


def _notes(reply: Reply) -> Iterator[Text]:
    """Warnings: an incomplete index, overload, a truncated question."""
    if not reply.coverage.complete:
        yield from _uncovered(reply.coverage)
    if reply.dimmed:
        yield Text(
            f"overloaded: {reply.passages_granted} of {were(reply.passages_asked, 'passage')} "
            "admitted for reading",
            style="yellow",
        )
    yield from notes_on_question(reply.question_truncated, reply.unread_language)


def notes_on_question(is_truncated: bool, unread_language: str) -> Iterator[Text]:
    """Warnings about a question that was not read completely, or is in another language."""
    if is_truncated:
        yield Text("the question was too long: its end was not used", style="yellow")
    if unread_language:
        yield Text(
            f"the question is probably in the language '{printable(unread_language)}', which the "
            "models do not read",
            style="yellow",
        )


def _uncovered(coverage: Coverage) -> Iterator[Text]:
    yield Text(
        f"not complete: {coverage.searched} of {were(coverage.known, 'passage')} searched",
        style="yellow",
    )
    failed = [part for part in coverage.shards if part.status is not ShardStatus.SEARCHED]
    for part in failed[:_MAX_SHARDS]:
        reason = f" ({printable(part.reason)})" if part.reason else ""
        yield Text(f"  shard {part.shard}: {part.status.value}{reason}", style="yellow")
    if len(failed) > _MAX_SHARDS:
        yield Text(f"  and {len(failed) - _MAX_SHARDS} more", style="yellow")


def _cost(reply: Reply) -> Iterator[Text]:
    """The elapsed time, and the numbers of passages read and needed."""
    took = f"{reply.timings.total_ms:.1f} ms"
    if reply.cached:
        yield Text(f"{took}, answered from the cache", style="dim")
        return
    needed = reply.passages_read if reply.passages_needed is None else reply.passages_needed
    unneeded = f", {needed} of them needed" if needed < reply.passages_read else ""
    yield Text(f"{took}, {many(reply.passages_read, 'passage')} read{unneeded}", style="dim")
