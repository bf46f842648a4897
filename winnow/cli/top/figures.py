"""What two looks at a cluster tell together: rates, and quantiles of the time between. Pure."""

from dataclasses import dataclass, field

from winnow.cli.top.look import Look
from winnow.cli.top.page import Page
from winnow.cli.top.processes import CALLS, Process, part_of, process

_STAGE = "winnow_front_stage_seconds"
_ASKED = ("Answer", "AnswerOfMany")
"""One question by a call, or one of several."""
_STAGES = ("queue", "tokenise", "encode", "retrieve", "read", "merge")


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Seconds of a stage of the questions between two looks; None if there were none."""

    name: str
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class IntervalFigures:
    """Between two looks; None is what is not known."""

    questions: float | None = None
    """Answered a second."""
    refused: float | None = None
    """A second."""
    coverage: float | None = None
    """Mean share of the known passages that was searched."""
    dimmed: float | None = None
    """Share of the questions that had fewer passages read than they asked for."""
    remembered: float | None = None
    """Share of the questions whose answer was remembered."""
    stages: list[StageTimes] = field(default_factory=list)
    """Of the fronts whose metrics are there, together; first a whole answer."""
    processes: list[Process] = field(default_factory=list)
    """Whose metrics are looked at."""


def figures(before: Look | None, now: Look) -> IntervalFigures:
    """What can be said; without a look before, only what needs none."""
    seconds = now.at - before.at if before else 0.0
    grown = _grown(before, now)
    processes = [process(at, page, grown.get(at), seconds) for at, page in now.pages.items()]
    fronts = [page for page in grown.values() if part_of(page) == "front"]
    questions, refused = _asked(before, now, seconds)
    if not fronts:
        return IntervalFigures(questions, refused, processes=processes)
    front = Page.together(fronts)
    return IntervalFigures(
        questions,
        refused,
        front.mean("winnow_front_coverage_ratio"),
        front.share("winnow_front_admissions_total", result="dimmed"),
        front.share("winnow_front_answer_cache_total", result="hit"),
        [
            _stage("answer", front, CALLS, method=_ASKED, status="OK"),
            *(_stage(name, front, _STAGE, stage=name) for name in _STAGES),
        ],
        processes,
    )


def _grown(before: Look | None, now: Look) -> dict[str, Page]:
    """What was counted between the looks, by address, where both had a page."""
    pages = [(at, page, before.pages.get(at) if before else None) for at, page in now.pages.items()]
    return {
        at: page.grown(old)
        for at, page, old in pages
        if isinstance(page, Page) and isinstance(old, Page)
    }


def _asked(before: Look | None, now: Look, seconds: float) -> tuple[float | None, float | None]:
    """Questions answered and refused a second; not known if the front began anew."""
    new = now.cluster.front
    if before is None or seconds <= 0 or new.up_seconds < before.cluster.front.up_seconds:
        return None, None
    old = before.cluster.front
    return (
        (new.questions_answered - old.questions_answered) / seconds,
        (new.questions_refused - old.questions_refused) / seconds,
    )


def _stage(name: str, page: Page, histogram: str, **labels: str | tuple[str, ...]) -> StageTimes:
    return StageTimes(name, *(page.quantile(at, histogram, **labels) for at in (0.5, 0.95, 0.99)))
