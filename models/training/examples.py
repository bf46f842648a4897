"""Makes token sequences with the position of the answer, and batches of sequences.

A sequence is `[CLS] question [SEP] title [SEP] window [SEP]`. The window is the whole passage or a
part of it.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import Tensor

from models.data import Passage
from models.mining.mine import TrainingQuestion

MAX_QUESTION_TOKENS = 48
MAX_TITLE_TOKENS = 16
SHORT_TOKENS = 144
"""Maximum length of sequences in most steps, to save time."""
LONG_TOKENS = 288
"""Maximum length of sequences in the other steps, long enough for whole passages."""
_LONG_SHARE = 0.12
"""Share of the steps with `LONG_TOKENS`."""


@dataclass(frozen=True, slots=True)
class TokenisedPassage:
    """Token ids of a passage, with the character offsets of each text token."""

    title: tuple[int, ...]
    text: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Input sequence of a reader, with the answer's position."""

    ids: list[int]
    types: list[int]
    window: tuple[int, int]
    """First token of the window, and one past the last."""
    start: int = -1
    """First token of the answer; -1 in a negative."""
    end: int = -1
    """Last token of the answer; -1 in a negative."""


class TokenisedQuestions:
    """Training questions and passages as token ids."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        passages: Sequence[Passage],
        questions: Sequence[TrainingQuestion],
    ) -> None:
        self.cls = int(tokenizer.token_to_id("[CLS]") or 0)
        self.sep = int(tokenizer.token_to_id("[SEP]") or 0)
        titles = tokenizer.encode_batch([p.title for p in passages], add_special_tokens=False)
        texts = tokenizer.encode_batch([p.text for p in passages], add_special_tokens=False)
        self.passages = [
            TokenisedPassage(
                tuple(title.ids[:MAX_TITLE_TOKENS]), tuple(text.ids), tuple(text.offsets)
            )
            for title, text in zip(titles, texts, strict=True)
        ]
        encoded = tokenizer.encode_batch([q.question for q in questions], add_special_tokens=False)
        self.question_ids = [tuple(each.ids[:MAX_QUESTION_TOKENS]) for each in encoded]
        self.questions = list(questions)
        self.answer_spans = [
            token_span(
                self.passages[question.positive].offsets,
                question.answer_start,
                len(question.answer),
            )
            for question in questions
        ]

    def positive(self, number: int, max_tokens: int, generator: random.Random) -> Example | None:
        """Returns a question with its positive passage, or None if the answer has no tokens."""
        span = self.answer_spans[number]
        if span is None:
            return None
        return self._example(number, self.questions[number].positive, span, max_tokens, generator)

    def negative(
        self, number: int, passage: int, max_tokens: int, generator: random.Random
    ) -> Example:
        """Returns a question with a passage that lacks the answer."""
        return self._example(number, passage, None, max_tokens, generator)

    def _example(
        self,
        number: int,
        passage: int,
        span: tuple[int, int] | None,
        max_tokens: int,
        generator: random.Random,
    ) -> Example:
        question, tokens = self.question_ids[number], self.passages[passage]
        head = [self.cls, *question, self.sep, *tokens.title, self.sep]
        room = max(max_tokens - len(head) - 1, 8)
        first = window_start(len(tokens.text), room, span, generator)
        window = tokens.text[first : first + room]
        ids = [*head, *window, self.sep]
        types = [0] * (len(question) + 2) + [1] * (len(ids) - len(question) - 2)
        bounds = (len(head), len(head) + len(window))
        if span is None:
            return Example(ids=ids, types=types, window=bounds)
        shift = len(head) - first
        end = min(span[1] + shift, bounds[1] - 1)
        return Example(ids=ids, types=types, window=bounds, start=span[0] + shift, end=end)


def draw_max_tokens(generator: random.Random) -> int:
    """Draws the maximum length of a step's sequences: `LONG_TOKENS` in a small share of steps."""
    return LONG_TOKENS if generator.random() < _LONG_SHARE else SHORT_TOKENS


def token_span(
    offsets: Sequence[tuple[int, int]], start: int, length: int
) -> tuple[int, int] | None:
    """Returns the first and last token that overlap the characters [start, start + length)."""
    overlapping = [i for i, (a, b) in enumerate(offsets) if b > start and a < start + length]
    return (overlapping[0], overlapping[-1]) if overlapping else None


def window_start(
    tokens: int, room: int, span: tuple[int, int] | None, generator: random.Random
) -> int:
    """Draws the start of a window of `room` tokens.

    The window contains the first token of `span`, and the last token if there is room.
    """
    if tokens <= room:
        return 0
    if span is None:
        return generator.randint(0, tokens - room)
    latest = min(span[0], tokens - room)
    earliest = min(max(0, span[1] - room + 1), latest)
    return generator.randint(earliest, latest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Tensors of one step. Passage 0 of every question is its positive."""

    ids: Tensor
    """Token ids, [questions * passages, tokens]. `mask` and `types` have the same shape."""
    mask: Tensor
    types: Tensor
    in_passage: Tensor
    """Whether a token belongs to the passage's text, [questions, passages, tokens]."""
    first: Tensor
    """First token of the answer in the positive, [questions]."""
    last: Tensor
    """Last token of the answer in the positive, [questions]."""

    @property
    def sequences(self) -> int:
        return int(self.ids.shape[0])

    def parts(self, max_attention: int) -> Iterator[tuple["Batch", float]]:
        """Splits the batch to limit memory. Yields each part with its share of the questions.

        A part has at least one question and at most `max_attention` pairs of tokens.
        """
        questions, passages, width = self.in_passage.shape
        size = max(max_attention // (passages * width**2), 1)
        for first in range(0, questions, size):
            last = min(first + size, questions)
            yield self._slice(first, last), (last - first) / questions

    def _slice(self, first: int, last: int) -> "Batch":
        passages = self.in_passage.shape[1]
        rows = slice(first * passages, last * passages)
        width = int(self.mask[rows].sum(1).max())
        ids, mask, types = (each[rows, :width] for each in (self.ids, self.mask, self.types))
        return Batch(
            ids=ids,
            mask=mask,
            types=types,
            in_passage=self.in_passage[first:last, :, :width],
            first=self.first[first:last],
            last=self.last[first:last],
        )


def make_batch(
    tokenised: TokenisedQuestions, numbers: Sequence[int], negatives: int, seed: int, step: int
) -> Batch:
    """Returns the batch of `numbers` at `step`, the same for the same arguments.

    Each question has `negatives` passages, drawn from its mined negatives and repeated if there are
    too few. Questions without negatives or without an answer are left out. Whole passages have
    separate steps, because one long sequence would pad all sequences of a batch.
    """
    generator = random.Random(f"{seed}/{step}")
    max_tokens = draw_max_tokens(generator)
    rows: list[list[Example]] = []
    for number in numbers:
        positive = tokenised.positive(number, max_tokens, generator)
        mined = tokenised.questions[number].negatives
        if positive is None or not mined:
            continue
        drawn = generator.sample(mined, min(negatives, len(mined)))
        drawn += generator.choices(mined, k=negatives - len(drawn))
        negative_examples = (tokenised.negative(number, p, max_tokens, generator) for p in drawn)
        rows.append([positive, *negative_examples])
    return _to_batch(rows)


def _to_batch(rows: Sequence[Sequence[Example]]) -> Batch:
    flat = [example for row in rows for example in row]
    width = max(len(example.ids) for example in flat)
    ids = torch.zeros(len(flat), width, dtype=torch.long)
    mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
    in_passage = torch.zeros(len(flat), width, dtype=torch.bool)
    for row, example in enumerate(flat):
        length = len(example.ids)
        ids[row, :length] = torch.tensor(example.ids)
        types[row, :length] = torch.tensor(example.types)
        mask[row, :length] = 1
        in_passage[row, example.window[0] : example.window[1]] = True
    return Batch(
        ids=ids,
        mask=mask,
        types=types,
        in_passage=in_passage.view(len(rows), -1, width),
        first=torch.tensor([row[0].start for row in rows]),
        last=torch.tensor([row[0].end for row in rows]),
    )
