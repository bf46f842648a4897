"""The tools that agents call: `ask`, `search`, `fetch` and `read`."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from winnow.client import Answer, Coverage, Reply
from winnow.client.aio import AsyncClientApi
from winnow.domain.answer_size import AnswerSize
from winnow.errors import InvalidRequestError, Violation
from winnow.mcp.documents import TextSource, citation_of, url_of
from winnow.mcp.values import (
    AskArguments,
    AskToolResult,
    CandidateAnswer,
    FetchArguments,
    FetchToolResult,
    IndexCoverage,
    ReadArguments,
    ReadToolResult,
    SearchArguments,
    SearchHit,
    SearchToolResult,
    TextAnswer,
    ToolArguments,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool:
    """A tool: what agents read about it, and what it does."""

    name: str
    title: str
    description: str
    arguments: type[ToolArguments]
    result: type[BaseModel]
    run: Callable[[AsyncClientApi, float, Any], Awaitable[BaseModel]]
    """`run(api, timeout, arguments)` returns the result; raises WinnowError."""
    call: str
    """Name of the gRPC call that the tool needs."""


async def _ask(api: AsyncClientApi, timeout: float, asked: AskArguments) -> AskToolResult:
    reply = await api.ask(
        asked.question, answers=asked.candidates, where=asked.filter or None, timeout=timeout
    )
    candidates = list(map(_candidate, reply.answers))
    best = candidates.pop(0).model_dump() if reply.has_answer and candidates else {}
    return AskToolResult(
        has_answer=bool(best),
        candidates=candidates,
        coverage=_coverage(reply.coverage),
        notes=_notes(reply),
        **best,
    )


def _candidate(answer: Answer) -> CandidateAnswer:
    passage = answer.passage
    confidence = answer.confidence
    if answer.size is not AnswerSize.SPAN and answer.sentence_confidence is not None:
        confidence = max(answer.sentence_confidence, confidence or 0.0)
    return CandidateAnswer(
        answer=answer.shown_text,
        sentence=passage.text[answer.sentence_start : answer.sentence_end],
        confidence=None if confidence is None else round(confidence, 4),
        citation=citation_of(passage),
        id=passage.id,
        url=url_of(passage),
    )


def _notes(reply: Reply) -> list[str]:
    notes = []
    if not reply.coverage.complete:
        notes.append(
            f"{reply.coverage.failed} of {reply.coverage.known} passages were not searched: a "
            "better answer may exist"
        )
    if reply.dimmed:
        notes.append("the index is busy, and fewer passages were read than usual")
    return notes + _notes_on_question(reply.question_truncated, reply.unread_language)


def _notes_on_question(is_truncated: bool, unread_language: str) -> list[str]:
    notes = []
    if is_truncated:
        notes.append("the question is long, and its end was not read: ask a shorter question")
    if unread_language:
        notes.append(f"the models do not read the question's language ({unread_language})")
    return notes


async def _search(api: AsyncClientApi, timeout: float, wanted: SearchArguments) -> SearchToolResult:
    with _with_own_names(question="query"):
        reply = await api.search(
            wanted.query, passages=wanted.limit, where=wanted.filter or None, timeout=timeout
        )
    passages = [each.passage for each in reply.passages]
    hits = [
        SearchHit(
            id=each.id,
            title=each.title or each.id,
            url=url_of(each),
            text=each.text,
            citation=citation_of(each),
        )
        for each in passages
    ]
    return SearchToolResult(results=hits, coverage=_coverage(reply.coverage))


async def _fetch(api: AsyncClientApi, timeout: float, wanted: FetchArguments) -> FetchToolResult:
    with _with_own_names(ids="id"):
        return await TextSource(api, timeout).fetch(wanted.id)


async def _read(api: AsyncClientApi, timeout: float, wanted: ReadArguments) -> ReadToolResult:
    texts = wanted.texts
    reply = await api.read(wanted.question, texts, answers=len(texts), timeout=timeout)
    answers = [
        TextAnswer(
            text=each.index,
            answer=each.text,
            sentence=texts[each.index][slice(*each.sentence)],
            confidence=None if each.confidence is None else round(each.confidence, 4),
            relevance=round(each.relevance_score, 4),
        )
        for each in reply.best
    ]
    notes = _notes_on_question(reply.report.question_truncated, reply.report.unread_language)
    return ReadToolResult(has_answer=reply.has_answer, answers=answers, notes=notes)


@contextmanager
def _with_own_names(**names: str) -> Iterator[None]:
    """Names the wrong fields of a request as the arguments of the tool are named."""
    try:
        yield
    except InvalidRequestError as error:
        own = (
            Violation(names.get(each.field.partition("[")[0], each.field), each.description)
            for each in error.violations
        )
        raise InvalidRequestError(*own) from error


def _coverage(coverage: Coverage) -> IndexCoverage:
    return IndexCoverage(
        complete=coverage.complete,
        passages_known=coverage.known,
        passages_searched=coverage.searched,
    )


TOOLS = (
    AgentTool(
        name="ask",
        title="Ask a question",
        description="Answers a question with the exact words of an indexed passage. Returns the "
        "answer, its sentence, the probability that it is right, and a citation. Use it for "
        "questions whose answer is a name, a number, a date or a phrase.",
        arguments=AskArguments,
        result=AskToolResult,
        run=_ask,
        call="Answer",
    ),
    AgentTool(
        name="search",
        title="Search passages",
        description="Finds the passages that are most likely to answer a question. Use it if ask "
        "has no answer, or if the task needs several passages. fetch returns more of a document.",
        arguments=SearchArguments,
        result=SearchToolResult,
        run=_search,
        call="SearchPassages",
    ),
    AgentTool(
        name="fetch",
        title="Fetch a text",
        description="Returns a passage by the id of a search result, or a whole document by its "
        "URI. A long document has several parts: next is the URI of the next one.",
        arguments=FetchArguments,
        result=FetchToolResult,
        run=_fetch,
        call="GetPassages",
    ),
    AgentTool(
        name="read",
        title="Read texts",
        description="Answers a question from texts that you have, with their exact words: such as "
        "pages that another tool has returned. No index is searched.",
        arguments=ReadArguments,
        result=ReadToolResult,
        run=_read,
        call="ReadTexts",
    ),
)
