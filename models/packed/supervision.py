"""Distant supervision: a reader confirms which candidate answers a question (Chen et al. 2017).

A question without a known passage gets the candidate in which the reader's best span is an
accepted answer. A cloze question falls back to the passage that it was made from.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from models.network.architecture import Reader
from models.packed.arrays import MAX_ANSWER_TOKENS
from models.packed.encoding import reader_logits
from models.packed.tokens import PassageTokens, QuestionTokens
from models.training.loop import autocast

_MASKED = -1e4
MAX_SPAN = 10
"""Longest answer of a reader, in tokens."""
MAX_READ = 3
"""Number of candidates with an answer to read for each question."""
_READER_TOKENS = 224
_MATCHED, _READ_TOGETHER = 16_384, 512
"""Batch sizes: passages whose answers are matched, and pairs that are read."""


@dataclass(frozen=True, slots=True)
class AnswerMatches:
    """Positions of accepted answers in passages."""

    starts: Tensor
    """Whether an answer begins at a token of title and text, [passages, answers, tokens]."""
    lengths: Tensor
    """Number of tokens of each answer, [passages, answers]."""

    @property
    def contained(self) -> Tensor:
        """Whether a passage contains an answer, [passages]."""
        return self.starts.flatten(1).any(1)

    def is_answer(self, first: Tensor, last: Tensor) -> Tensor:
        """Returns whether tokens `first` to `last` of each passage are an answer, [passages]."""
        width = self.starts.shape[2]
        place = first.clamp(0, width - 1)[:, None, None].expand(-1, self.starts.shape[1], 1)
        begins = self.starts.gather(2, place).squeeze(2) & (first < width)[:, None]
        return (begins & (first[:, None] + self.lengths - 1 == last[:, None])).any(1)


def match_answers(passages: PassageTokens, rows: Tensor, answers: Tensor) -> AnswerMatches:
    """Finds `answers` [passages, answers, tokens], padded by 0, as whole words in passages."""
    used = int((answers != 0).any(2).any(0).sum().clamp(min=1))
    answers = answers[:, :used]
    lengths = (answers != 0).sum(2)
    text = torch.nn.functional.pad(passages.plain(rows), (0, MAX_ANSWER_TOKENS + 1))
    width = text.shape[1] - MAX_ANSWER_TOKENS - 1
    starts = (lengths > 0)[..., None].repeat(1, 1, width)
    for place in range(int(lengths.max()) if lengths.numel() else 0):
        same = text[:, None, place : place + width] == answers[:, :, place, None]
        starts &= same | (lengths <= place)[..., None]
    positions = torch.arange(width, device=rows.device)
    behind = text.gather(1, (positions + lengths[..., None]).flatten(1)).view_as(starts)
    return AnswerMatches(starts & ~passages.continues[behind], lengths)


def contain_answers(passages: PassageTokens, rows: Tensor, answers: Tensor) -> Tensor:
    """Returns whether each candidate contains an answer, [questions, candidates].

    `rows` are the candidates, padded by -1. Padding contains no answer.
    """
    flat = rows.clamp(min=0).flatten()
    places = torch.arange(len(flat), device=rows.device)
    contained = [
        match_answers(passages, flat[part], answers[part // rows.shape[1]]).contained
        for part in torch.split(places, _MATCHED)
    ]
    return torch.cat(contained).view_as(rows) & (rows >= 0)


def best_spans(
    start: Tensor, end: Tensor, text_mask: Tensor, longest: int = MAX_SPAN
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns first token, last token and score of the best span in each passage, [passages].

    A span has at most `longest` tokens.
    """
    start, end = (each.float().masked_fill(~text_mask, _MASKED) for each in (start, end))
    padded = torch.nn.functional.pad(end, (0, longest - 1), value=2 * _MASKED)
    best_end, length = padded.unfold(1, longest, 1).max(2)
    score, first = (start + best_end).max(1)
    return first, first + length.gather(1, first[:, None]).squeeze(1), score


@torch.no_grad()
def confirm_passages(
    reader: Reader,
    passages: PassageTokens,
    questions: QuestionTokens,
    numbers_and_candidates: tuple[Tensor, Tensor],
) -> tuple[Tensor, Tensor]:
    """Returns the passage that answers each question, or -1, and the answer's span in the text.

    Reads the first `MAX_READ` candidates with an answer.

    Args:
        reader: a full cross-encoder.
        passages: all passages.
        questions: all questions.
        numbers_and_candidates: numbers of questions without a known span, [questions], and their
            candidates, best first, [questions, candidates].

    """
    numbers, rows = numbers_and_candidates
    contained = contain_answers(passages, rows, questions.answers[numbers])
    order = (~contained).int().argsort(dim=1, stable=True)[:, :MAX_READ]
    chosen = contained.gather(1, order)
    owners, places = chosen.nonzero(as_tuple=True)
    read = rows.gather(1, order)[owners, places]
    score = torch.full(chosen.shape, _MASKED, device=rows.device)
    spans = torch.full((*chosen.shape, 2), -1, device=rows.device)
    for part in torch.split(torch.arange(len(read), device=rows.device), _READ_TOGETHER):
        pairs = numbers[owners[part]]
        sequences = passages.reader_sequences(read[part], _READER_TOKENS, torch.zeros_like(part))
        with autocast(rows.device.type):
            start, end, relevance = reader_logits(reader, questions.sequences(pairs), sequences)
        first, last, span_score = best_spans(start, end, sequences.text_mask)
        matches = match_answers(passages, read[part], questions.answers[pairs])
        text_first, text_last = first - sequences.text, last - sequences.text
        titles = passages.titles[read[part]]
        right = matches.is_answer(text_first + titles, text_last + titles)
        place = owners[part], places[part]
        score[place] = torch.where(right, span_score + relevance, _MASKED)
        spans[place] = torch.stack([text_first, text_last], 1)
    best = score.argmax(1, keepdim=True)
    confirmed = score.gather(1, best).squeeze(1) > _MASKED / 2
    gold = rows.gather(1, order).gather(1, best).squeeze(1)
    span = spans.gather(1, best[..., None].expand(-1, 1, 2)).squeeze(1)
    return torch.where(confirmed, gold, -1), torch.where(confirmed[:, None], span, -1)
