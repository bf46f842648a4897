"""Asks the questions of a collection, and takes from each reply what is judged."""

from collections.abc import Callable, Sequence

from bench.documents.collection import Question
from bench.documents.figures import DEPTHS, JudgedReply
from bench.documents.judging import FoundAnswer, FoundPassage
from winnow.client.aio import AsyncClientApi
from winnow.client.replies import Answer, Passage, Reply
from winnow.documents.passages import ID_SEPARATOR

_TIMEOUT = 60.0


async def ask_all(
    client: AsyncClientApi, questions: Sequence[Question], on_reply: Callable[[], None]
) -> list[JudgedReply]:
    """Asks each question with ten passages read, so that the rank of the gold passage is known.

    Raises WinnowError if a question fails. Calls `on_reply` after each reply.
    """
    replies: list[JudgedReply] = []
    for question in questions:
        reply = await client.ask(
            question.text,
            passages_to_read=max(DEPTHS),
            answers=max(DEPTHS),
            max_loss=0.0,
            fresh=True,
            timeout=_TIMEOUT,
        )
        replies.append(judged_reply(question, reply))
        on_reply()
    return replies


def judged_reply(question: Question, reply: Reply) -> JudgedReply:
    """Takes from a reply what is judged."""
    # passages are read in the order of their hybrid distance
    retrieved = sorted(reply.answers, key=lambda each: each.hybrid_distance)
    return JudgedReply(
        question=question,
        shown=reply.has_answer,
        best=_found(reply.answers[0]) if reply.answers else None,
        retrieved=tuple(_passage(each.passage) for each in retrieved),
    )


def _found(answer: Answer) -> FoundAnswer:
    text, start, end = answer.passage.text, answer.sentence_start, answer.sentence_end
    return FoundAnswer(
        span=answer.text,
        sentence=answer.text if start is None or end is None else text[start:end],
        passage=_passage(answer.passage),
        score=answer.score,
        confidence=answer.confidence,
        sentence_confidence=answer.sentence_confidence,
    )


def _passage(passage: Passage) -> FoundPassage:
    document, _, _ = passage.id.rpartition(ID_SEPARATOR)
    return FoundPassage(document, passage.text)
