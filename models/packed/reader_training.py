"""Trains a split reader on mined questions, with other readers as teachers of answer spans.

The reader learns its own ranking of passages. Its teachers only teach where the answer is in a
passage, so that the reader does not get worse at spans while it learns to rank. Some questions have
no answer, only a passage that seems to answer them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from models.network.architecture import Logits, Reader
from models.network.split_reader import SplitReader, round_states
from models.packed.arrays import NO_ANSWER
from models.packed.encoding import reader_logits
from models.packed.mined import MinedQuestions
from models.packed.tokens import READER_TITLE_TOKENS, PassageTokens, QuestionTokens, Sequences
from models.training.loop import autocast
from models.training.objective import (
    absolute_relevance_loss,
    refusing_losses,
    span_imitation_loss,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedReadingPlan:
    """Training settings of a split reader."""

    questions: int = 64
    """Questions per step."""
    negatives: int = 5
    """Negatives of each question."""
    among: int = 20
    """Number of best negatives from which `negatives` are drawn."""
    tokens: int = 256
    """Maximum length of a passage's window, in tokens."""
    absolute: float = 0.5
    """Weight of the loss of absolute relevance."""
    spans: float = 1.0
    """Weight of the loss of the teachers' spans."""
    sorted_batches: int = 32
    """Number of batches whose questions are sorted by length together."""


class PackedReadingTask:
    """Computes the losses of a split reader over batches of mined questions."""

    def __init__(
        self,
        *,
        reader: SplitReader,
        teachers: Sequence[Reader | SplitReader],
        passages: PassageTokens,
        questions: QuestionTokens,
        mined: MinedQuestions,
        weights: Tensor,
        plan: PackedReadingPlan,
        is_taught: Tensor | None = None,
    ) -> None:
        """Prepares batches.

        `weights` are the relative chances of questions to be drawn, [questions]. The teachers teach
        only the questions in `is_taught`, by their numbers in the pack (default: all).
        """
        self.network, self._teachers, self._plan = reader, teachers, plan
        self._passages, self._questions, self._is_taught = passages, questions, is_taught
        known = mined.is_answered | (mined.spans[:, 0] == NO_ANSWER)
        usable = known & mined.is_negative.any(1) & (weights > 0)
        self._mined, self._weights = mined.take(usable), weights[usable]

    def steps(self) -> Iterator[Callable[[], dict[str, Tensor]]]:
        """Yields training steps without end. The passages of a step have similar lengths."""
        plan = self._plan
        window = min(plan.questions * plan.sorted_batches, len(self._mined))
        while True:
            drawn = self._weights.multinomial(window)
            lengths = self._passages.lengths[self._mined.gold[drawn]]
            batches = torch.split(drawn[lengths.argsort()], plan.questions)
            for number in torch.randperm(len(batches)).tolist():
                part = self._mined.take(batches[number])
                yield partial(self.losses, part)

    def losses(self, part: MinedQuestions) -> dict[str, Tensor]:
        """Returns the losses of a batch."""
        plan, passages = self._plan, 1 + self._plan.negatives
        negatives = part.draw_negatives(plan.negatives, plan.among)
        rows = torch.cat([part.gold[:, None], negatives], 1)
        offsets, limit = self._windows(rows, part.spans)
        sequences = self._passages.reader_sequences(rows.flatten(), limit, offsets.flatten())
        question_sequences = self._questions.sequences(part.numbers)
        first, last = (
            part.spans[:, side].clamp(min=0) - offsets[:, 0] + sequences.text[::passages]
            for side in (0, 1)
        )
        last = torch.minimum(last, (sequences.text + sequences.text_lengths)[::passages] - 1)
        shape = len(part), passages
        text_mask = sequences.text_mask.view(*shape, -1)
        with autocast(rows.device.type):
            logits = split_logits(self.network, question_sequences, sequences)
        start, end, relevance = logits
        by_question = start.view(*shape, -1), end.view(*shape, -1), relevance.view(shape)
        is_answered = part.is_answered
        span, ranking = refusing_losses(by_question, text_mask, first, last, is_answered)
        absolute = absolute_relevance_loss(by_question[2], is_answered) * plan.absolute
        losses = {"span": span, "relevance": ranking, "absolute": absolute}
        is_taught = is_answered
        if self._is_taught is not None:
            is_taught = is_taught & self._is_taught[part.numbers]
        if not is_taught.any():
            return losses
        positives = _every_nth(sequences, passages)
        taught = self._teacher_logits(question_sequences, positives)
        student = (each[::passages][is_taught] for each in logits)
        teacher = (each[is_taught] for each in taught)
        mask = text_mask[:, :1][is_taught]
        imitation = span_imitation_loss(tuple(student), tuple(teacher), mask)  # type: ignore[arg-type]
        return losses | {"teachers": imitation * plan.spans}

    def _windows(self, rows: Tensor, spans: Tensor) -> tuple[Tensor, int]:
        """Draws the first text token of each passage's window, [questions, passages].

        Also returns the maximum length of the sequences. The window of a positive contains its
        answer.
        """
        titles = self._passages.titles[rows]
        texts = self._passages.lengths[rows] - titles
        heads = titles.clamp(max=READER_TITLE_TOKENS) + 2
        limit = min(int((texts[:, 0] + heads[:, 0]).max()), self._plan.tokens)
        room = limit - heads
        latest = (texts - room).clamp(min=0)
        earliest = torch.zeros_like(latest)
        latest[:, 0] = torch.minimum(latest[:, 0], spans[:, 0].clamp(min=0))
        earliest[:, 0] = (spans[:, 1] - room[:, 0] + 1).clamp(min=0).minimum(latest[:, 0])
        drawn = torch.rand(rows.shape, device=rows.device) * (latest - earliest + 1)
        return (earliest + drawn.long()).minimum(latest), limit

    @torch.no_grad()
    def _teacher_logits(self, question_sequences: Sequences, positives: Sequences) -> Logits:
        """Returns the mean of the teachers' logits for the positives."""
        with autocast(positives.ids.device.type):
            taught = [
                split_logits(teacher, question_sequences, positives)
                if isinstance(teacher, SplitReader)
                else reader_logits(teacher, question_sequences, positives)
                for teacher in self._teachers
            ]
        start, end, relevance = (torch.stack(each).mean(0) for each in zip(*taught, strict=True))
        return start, end, relevance


def split_logits(reader: SplitReader, question_sequences: Sequences, passages: Sequences) -> Logits:
    """Reads every passage with its question. The passages of a question follow each other.

    Returns start and end [passages, passage tokens] and relevance [passages].
    """
    each = len(passages.ids) // len(question_sequences.ids)
    question = reader.lower(question_sequences.ids, 0, question_sequences.mask).repeat_interleave(
        each, 0
    )
    passage = round_states(reader.lower(passages.ids, 1, passages.mask))
    mask = torch.cat([question_sequences.mask.repeat_interleave(each, 0), passages.mask], 1)
    start, end, relevance = reader.read(reader.upper(torch.cat([question, passage], 1), mask)[-1])
    width = question_sequences.ids.shape[1]
    return start[:, width:], end[:, width:], relevance


def _every_nth(sequences: Sequences, count: int) -> Sequences:
    return Sequences(
        sequences.ids[::count],
        sequences.mask[::count],
        sequences.text[::count],
        sequences.text_lengths[::count],
    )
