"""A reply as a terminal, or a pipe, shows it. Pure: a reply in, something printable out."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from winnow.cli.ask.timeline import timeline
from winnow.cli.ask.words import harmless, highlighted
from winnow.cli.predict.render import heads_shown
from winnow.client import Answer, Coverage, Reply, ShardStatus
from winnow.quoting import many, were

_MOST_SHARDS = 8
_UNSUREST, _SUREST = 0.01, 0.99


def shown(reply: Reply, width: int, plain: bool, timings: bool = False) -> Group:
    """All that is shown of a reply, in `width` columns; `plain` without frames and styles.

    `timings` adds when each stage, each call to a shard and each read was.
    """
    parts: list[RenderableType] = []
    for part in (
        _head(reply, plain),
        _candidates(reply),
        heads_shown(reply.question, reply.heads, width, plain),
        _notes(reply),
        _cost(reply),
        timeline(reply.timings, width) if timings else (),
    ):
        lines = list(part)
        if lines:
            parts += [*([Text()] if parts else []), *lines]
    return Group(*parts)


def _head(reply: Reply, plain: bool) -> Iterator[RenderableType]:
    """The best answer, large, and its passage; or that there is none."""
    if reply.answer is None:
        yield Text("no answer is likely", style="bold yellow")
        return
    best = reply.answers[0]
    said = Text(harmless(best.text), style="bold green")
    yield said if plain else Panel(said, padding=(1, 4), expand=False)
    yield Text()
    if best.passage.title:
        yield Text(harmless(best.passage.title), style="bold")
    yield highlighted(best, plain)
    sure = "" if best.confidence is None else f"confidence {_percent(best.confidence)}, "
    yield Text(
        f"{sure}score {best.score:.2f}, passage {harmless(best.passage.id)}, shard {best.shard}",
        style="dim",
    )


def _candidates(reply: Reply) -> Iterator[Text]:
    """The answers that are not shown as one."""
    others = reply.answers[1:] if reply.answer is not None else reply.answers
    if others:
        likely = reply.answer is not None
        yield Text("other candidates" if likely else "candidates", style="dim")
    for answer in others:
        yield _candidate(answer)


def _candidate(answer: Answer) -> Text:
    title = harmless(answer.passage.title)
    score = f"score {answer.score:.2f}"
    sure = score if answer.confidence is None else f"{_percent(answer.confidence):>5}"
    return Text.assemble(
        (f"{sure}  ", "dim"),
        (harmless(answer.text) or "(no words)", "bold"),
        (f"  {title}" if title else "", "dim"),
    )


def _percent(confidence: float) -> str:
    """A probability in whole percent; none is called impossible or certain."""
    if confidence > _SUREST:
        return f">{_SUREST:.0%}"
    return f"{confidence:.0%}" if confidence >= _UNSUREST else f"<{_UNSUREST:.0%}"


def _notes(reply: Reply) -> Iterator[Text]:
    """What makes this reply less than it might be."""
    if not reply.coverage.complete:
        yield from _uncovered(reply.coverage)
    if reply.dimmed:
        yield Text(
            f"too much to do: {reply.passages_granted} of {were(reply.passages_asked, 'passage')} "
            "let in to be read",
            style="yellow",
        )
    if reply.question_truncated:
        yield Text("the question was too long: its end was not used", style="yellow")


def _uncovered(coverage: Coverage) -> Iterator[Text]:
    yield Text(
        f"not complete: {coverage.searched} of {were(coverage.known, 'passage')} searched",
        style="yellow",
    )
    failed = [part for part in coverage.shards if part.status is not ShardStatus.SEARCHED]
    for part in failed[:_MOST_SHARDS]:
        reason = f" ({harmless(part.reason)})" if part.reason else ""
        yield Text(f"  shard {part.shard}: {part.status.value}{reason}", style="yellow")
    if len(failed) > _MOST_SHARDS:
        yield Text(f"  and {len(failed) - _MOST_SHARDS} more", style="yellow")


def _cost(reply: Reply) -> Iterator[Text]:
    """How long it took, how many passages were read, and how many of them ahead and in vain."""
    took = f"{reply.timings.total_ms:.1f} ms"
    if reply.cached:
        yield Text(f"{took}, the answer was known", style="dim")
        return
    needed = reply.passages_read if reply.passages_needed is None else reply.passages_needed
    ahead = f", {needed} of them needed" if needed < reply.passages_read else ""
    yield Text(f"{took}, {many(reply.passages_read, 'passage')} read{ahead}", style="dim")
