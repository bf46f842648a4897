"""A question as it is asked, before anybody has looked at it."""

from dataclasses import dataclass

from winnow.domain.position import Position
from winnow.domain.question import PartialResults, ReadScope, Retriever


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """A question and its options, not validated; an option that is None is the server's default.

    `Question` says what each option means.
    """

    question: str
    passages_to_read: int | None = None
    answers: int | None = None
    read_scope: ReadScope | None = None
    retriever: Retriever | None = None
    max_answer_tokens: int | None = None
    max_loss: float | None = None
    partial_results: PartialResults | None = None
    min_coverage: float | None = None
    min_wait_factor: float | None = None
    max_wait_factor: float | None = None
    heads: tuple[str, ...] = ()
    """Heads to apply to the question."""
    fresh: bool = False
    """Whether passages are to be read even if the answer is known from before."""
    where: str = ""
    """A filter (`winnow.filtering`); empty for none."""
    after: tuple[Position, ...] = ()
    """Writes that the answer must know of, at most one for each shard."""
