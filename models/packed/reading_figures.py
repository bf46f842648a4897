"""Measures readers: exact match at gold passages and among retrieved ones, and refusals.

Answers are compared as tokens, without articles and punctuation. This is nearly exact match as
SQuAD defines it, and needs no tokenizer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from models.measuring.fitting import fit_signed_weights, ranking_loss
from models.network.split_reader import SplitReader
from models.packed.loaded import LoadedPack
from models.packed.reader_training import split_logits
from models.packed.supervision import MAX_SPAN, best_spans
from models.packed.tokens import PassageTokens, QuestionTokens
from models.training.loop import autocast

_WINDOW, _STRIDE = 256, 128
"""Maximum number of tokens of a window of a passage, and tokens between the beginnings of two."""
LONG_SPAN = 24
"""Longest answer about documents, in tokens. Technical terms have many tokens."""
_GPU_PAIRS, _CPU_PAIRS = 1024, 32
_KEPT = 0.95
"""Share of right answers that a threshold keeps."""
_RIDGE = 1e-4

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Readings:
    """The best span of each pair of question and passage, [pairs]."""

    span: Tensor
    """Sum of the logits of start and end."""
    relevance: Tensor
    exact: Tensor
    """Whether the span is an accepted answer."""
    f1: Tensor
    """Largest F1 of the span's tokens with an accepted answer."""

    @property
    def features(self) -> Tensor:
        """Span and relevance, [pairs, 2]."""
        return torch.stack([self.span, self.relevance], -1)

    def take(self, indices: Tensor | slice) -> Self:
        """Returns some of the readings, by index or by mask."""
        return type(self)(*(getattr(self, each.name)[indices] for each in fields(self)))

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Returns the readings of several sets as one."""
        return cls(
            *(torch.cat([getattr(part, each.name) for part in parts]) for each in fields(cls))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Questions with passages to read, [pairs]."""

    questions: QuestionTokens
    numbers: Tensor
    """Numbers of the questions."""
    rows: Tensor
    """Passages."""
    spans: Tensor | None = None
    """First and last token of an additional accepted answer in each passage, [pairs, 2]."""

    def answers(self, passages: PassageTokens) -> Tensor:
        """Returns the tokens of all accepted answers, padded by 0, [pairs, answers, tokens]."""
        answers = self.questions.answers[self.numbers]
        if self.spans is None:
            return answers
        first, last = self.spans.unbind(1)
        places = torch.arange(LONG_SPAN, device=first.device)
        places = (passages.starts[self.rows] + passages.titles[self.rows] + first)[:, None] + places
        tokens = passages.tokens[places.clamp(0, len(passages.tokens) - 1)]
        kept = (torch.arange(LONG_SPAN, device=first.device) <= (last - first)[:, None]) & (
            first[:, None] >= 0
        )
        more = torch.where(kept, tokens, 0)[:, None]
        return torch.cat([pad(answers, (0, LONG_SPAN - answers.shape[2])), more], 1)


@torch.no_grad()
def read_pairs(
    reader: SplitReader, pack: LoadedPack, read: Pairs, longest: int = MAX_SPAN
) -> Readings:
    """Reads pairs of question and passage, in windows. Spans have at most `longest` tokens."""
    questions, numbers, rows = read.questions, read.numbers, read.rows
    answers = read.answers(pack.passages)
    texts = pack.passages.lengths[rows] - pack.passages.titles[rows]
    windows = ((texts - _WINDOW // 2 + _STRIDE - 1) // _STRIDE).clamp(min=1, max=8)
    owners = torch.arange(len(rows), device=rows.device).repeat_interleave(windows)
    first = windows.cumsum(0) - windows
    offsets = (torch.arange(len(owners), device=rows.device) - first[owners]) * _STRIDE
    parts = []
    for part in torch.split(
        torch.arange(len(owners), device=rows.device), _GPU_PAIRS if rows.is_cuda else _CPU_PAIRS
    ):
        pairs = owners[part]
        sequences = pack.passages.reader_sequences(rows[pairs], _WINDOW, offsets[part])
        with autocast(rows.device.type):
            start, end, relevance = split_logits(
                reader, questions.sequences(numbers[pairs]), sequences
            )
        begin, last, score = best_spans(start, end, sequences.text_mask, longest)
        tokens = _span_tokens(sequences.ids, begin, last)
        exact, f1 = _compare(pack, tokens, answers[pairs])
        parts.append(torch.stack([score, relevance, exact.float(), f1]))
    score, relevance, exact, f1 = torch.cat(parts, 1)
    # the window with the best span stands for the passage
    width = int(windows.max())
    places = torch.arange(width, device=rows.device)
    by_pair = (first[:, None] + places).clamp(max=len(owners) - 1)
    shown = score[by_pair].masked_fill(places >= windows[:, None], -torch.inf)
    best = by_pair.gather(1, shown.argmax(1, keepdim=True)).squeeze(1)
    return Readings(score[best], relevance[best], exact[best] > 0, f1[best])


def gold_figures(readings: Readings) -> Figures:
    """Returns exact match and F1 in percent."""
    return {
        "questions": len(readings.exact),
        "em": _percent(readings.exact),
        "f1": _percent(readings.f1),
    }


@dataclass(frozen=True, slots=True)
class Choices:
    """What a reader finds in the candidates of questions. The passages are best first."""

    features: Tensor
    """Span, relevance and nearness, [questions, passages, 3]."""
    right: Tensor
    """Whether the span is an accepted answer, [questions, passages]."""

    def take(self, indices: Tensor) -> Self:
        """Returns some of the questions, by index or by mask."""
        return type(self)(self.features[indices], self.right[indices])


def fit_choice(choices: Choices) -> Tensor:
    """Returns the weights of the features that most likely choose a right passage.

    Questions without a right passage are left out. No weight is negative.
    """
    kept = choices.right.any(1)
    features, right = choices.features[kept].double(), choices.right[kept]
    start = torch.ones(features.shape[-1], dtype=torch.float64, device=features.device)
    if not len(right):
        return start.float()

    def loss(weights: Tensor) -> Tensor:
        return ranking_loss(features @ weights, right) + _RIDGE * weights.sum()

    return fit_signed_weights(start, loss).float()


def chosen_figures(choices: Choices, weights: Tensor, counts: Sequence[int]) -> Figures:
    """Returns exact match in percent of the best of the first passages, for several numbers."""
    scores = choices.features.float() @ weights
    figures = {}
    for count in counts:
        best = scores[:, :count].argmax(1, keepdim=True)
        figures[str(count)] = _percent(choices.right.gather(1, best))
    return figures | {"limit": _percent(choices.right.any(1))}


def refusal_figures(answered: Readings, unanswered: Readings) -> Figures:
    """Returns the share of questions without an answer that each score refuses, in percent.

    The threshold keeps 95 % of the right answers.
    """
    figures: Figures = {"answered": len(answered.exact), "unanswered": len(unanswered.exact)}
    right = answered.take(answered.exact)
    if len(right.exact):
        for name in ("span", "relevance"):
            threshold = getattr(right, name).quantile(1 - _KEPT)
            figures[name] = _percent(getattr(unanswered, name) < threshold)
    return figures


def _span_tokens(ids: Tensor, begin: Tensor, last: Tensor) -> Tensor:
    """Returns the tokens of spans, padded by 0, [pairs, tokens]."""
    width = int((last - begin).max()) + 1
    places = begin[:, None] + torch.arange(width, device=ids.device)
    found = ids.gather(1, places.clamp(max=ids.shape[1] - 1))
    return torch.where(places <= last[:, None], found, 0)


def _compare(pack: LoadedPack, tokens: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """Returns whether spans equal an answer, and their largest F1, both [pairs].

    Args:
        pack: names the tokens that do not count.
        tokens: tokens of spans, padded by 0, [pairs, tokens].
        answers: tokens of answers, padded by 0, [pairs, answers, tokens].

    """
    minor = torch.from_numpy(pack.packed_passages.minor).to(tokens.device)
    tokens, answers = (_without(each.long(), minor) for each in (tokens, answers))
    width = max(tokens.shape[-1], answers.shape[-1])
    tokens, answers = (pad(each, (0, width - each.shape[-1])) for each in (tokens, answers))
    lengths, of_answers = (tokens != 0).sum(-1)[:, None], (answers != 0).sum(-1)
    exact = ((tokens[:, None] == answers).all(-1) & (of_answers > 0)).any(1)
    same = (answers[..., None] == tokens[:, None, None]) & (answers != 0)[..., None]
    # every token counts at most once: an approximation for repeated tokens
    shared = torch.minimum(same.any(-1).sum(-1), same.any(-2).sum(-1))
    f1 = 2 * shared / (lengths + of_answers).clamp(min=1)
    return exact, f1.amax(1)


def _without(tokens: Tensor, minor: Tensor) -> Tensor:
    """Returns tokens [..., tokens] without minor ones, padded by 0 at the end."""
    kept = (tokens != 0) & ~minor[tokens]
    order = (~kept).int().argsort(dim=-1, stable=True)
    return torch.where(kept, tokens, 0).gather(-1, order)


def _percent(values: Tensor) -> float:
    return round(100 * float(values.float().mean()), 2)
