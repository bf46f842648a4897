"""Training examples: token sequences with the place of the answer, and batches of them as tensors.

A sequence is `[CLS] question [SEP] title [SEP] window [SEP]`; the window is the whole passage or a
part of it. Pure functions of tokens and a random generator: the same generator state gives the same
sequence.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import Tensor

from models.data import Passage
from models.mining.mine import TrainingQuestion

MAX_QUESTION = 48
MAX_TITLE = 16
CROPPED = 144
"""Tokens of sequences in most steps: a fraction of the compute of whole passages."""
WHOLE = 288
_WHOLE_SHARE = 0.12


@dataclass(frozen=True, slots=True)
class Tokens:
    """A passage as token ids, with the character offsets of each text token."""

    title: tuple[int, ...]
    text: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One reader input. `start` and `end` are token positions of the answer, -1 in a negative."""

    ids: list[int]
    types: list[int]
    passage: tuple[int, int]
    start: int = -1
    end: int = -1


class Encoded:
    """All passages and questions, tokenised once."""

    def __init__(
        self, tokenizer: Tokenizer, passages: Sequence[Passage], asked: Sequence[TrainingQuestion]
    ) -> None:
        self.cls = int(tokenizer.token_to_id("[CLS]") or 0)
        self.sep = int(tokenizer.token_to_id("[SEP]") or 0)
        titles = tokenizer.encode_batch([p.title for p in passages], add_special_tokens=False)
        texts = tokenizer.encode_batch([p.text for p in passages], add_special_tokens=False)
        self.passages = [
            Tokens(tuple(title.ids[:MAX_TITLE]), tuple(text.ids), tuple(text.offsets))
            for title, text in zip(titles, texts, strict=True)
        ]
        questions = tokenizer.encode_batch([q.question for q in asked], add_special_tokens=False)
        self.questions = [tuple(question.ids[:MAX_QUESTION]) for question in questions]
        self.asked = list(asked)
        self.spans = [self._span(question) for question in asked]

    def positive(self, number: int, most: int, generator: random.Random) -> Example | None:
        """Returns the gold passage of a question as a sequence of at most `most` tokens.

        Returns None if its answer does not fall on tokens.
        """
        span = self.spans[number]
        if span is None:
            return None
        return self._sequence(number, self.asked[number].positive, span, most, generator)

    def negative(self, number: int, passage: int, most: int, generator: random.Random) -> Example:
        """Returns a passage without the answer."""
        return self._sequence(number, passage, None, most, generator)

    def _sequence(
        self,
        number: int,
        passage: int,
        span: tuple[int, int] | None,
        most: int,
        generator: random.Random,
    ) -> Example:
        question, tokens = self.questions[number], self.passages[passage]
        head = [self.cls, *question, self.sep, *tokens.title, self.sep]
        room = max(most - len(head) - 1, 8)
        first = window_start(len(tokens.text), room, span, generator)
        window = tokens.text[first : first + room]
        ids = [*head, *window, self.sep]
        types = [0] * (len(question) + 2) + [1] * (len(ids) - len(question) - 2)
        place = (len(head), len(head) + len(window))
        if span is None:
            return Example(ids=ids, types=types, passage=place)
        moved = len(head) - first
        end = min(span[1] + moved, place[1] - 1)
        return Example(ids=ids, types=types, passage=place, start=span[0] + moved, end=end)

    def _span(self, question: TrainingQuestion) -> tuple[int, int] | None:
        offsets = self.passages[question.positive].offsets
        return token_span(offsets, question.answer_start, len(question.answer))


def longest(generator: random.Random) -> int:
    """Tokens of the longest sequence of a step: few steps have whole passages."""
    return WHOLE if generator.random() < _WHOLE_SHARE else CROPPED


def token_span(
    offsets: Sequence[tuple[int, int]], start: int, length: int
) -> tuple[int, int] | None:
    """Returns the first and last token that overlap the characters [start, start + length)."""
    inside = [i for i, (a, b) in enumerate(offsets) if b > start and a < start + length]
    return (inside[0], inside[-1]) if inside else None


def window_start(
    tokens: int, room: int, span: tuple[int, int] | None, generator: random.Random
) -> int:
    """Returns the start of a window of `room` tokens.

    The window holds the span's first token and, if it can, its last.
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
    """Tensors of one step: `ids`, `mask`, `types` [questions * passages, tokens], `inside`
    [questions, passages, tokens], `first`, `last` [questions].
    """

    ids: Tensor
    mask: Tensor
    types: Tensor
    inside: Tensor
    first: Tensor
    last: Tensor

    @property
    def sequences(self) -> int:
        return int(self.ids.shape[0])

    def parts(self, most: int) -> Iterator[tuple["Batch", float]]:
        """Yields the batch in parts of some questions, each with its share of the questions; at
        least one question, and at most `most` pairs of tokens that look at each other.
        """
        questions, passages, width = self.inside.shape
        some = max(most // (passages * width**2), 1)
        for first in range(0, questions, some):
            last = min(first + some, questions)
            yield self._between(first, last), (last - first) / questions

    def _between(self, first: int, last: int) -> "Batch":
        passages = self.inside.shape[1]
        rows = slice(first * passages, last * passages)
        width = int(self.mask[rows].sum(1).max())
        ids, mask, types = (each[rows, :width] for each in (self.ids, self.mask, self.types))
        inside = self.inside[first:last, :, :width]
        return Batch(
            ids=ids,
            mask=mask,
            types=types,
            inside=inside,
            first=self.first[first:last],
            last=self.last[first:last],
        )


def make_batch(
    encoded: Encoded, numbers: Sequence[int], negatives: int, seed: int, step: int
) -> Batch:
    """Returns the batch of `numbers` at `step`, the same for the same arguments.

    Each question brings `negatives` passages drawn from its mined ones. A question with fewer
    repeats them; one with none, or without an answer on tokens, is left out. Whole passages come
    in steps of their own: one of them among cropped ones would pad all of them.
    """
    generator = random.Random(f"{seed}/{step}")
    most = longest(generator)
    rows: list[list[Example]] = []
    for number in numbers:
        positive = encoded.positive(number, most, generator)
        mined = encoded.asked[number].negatives
        if positive is None or not mined:
            continue
        drawn = generator.sample(mined, min(negatives, len(mined)))
        drawn += generator.choices(mined, k=negatives - len(drawn))
        rows.append([positive, *(encoded.negative(number, p, most, generator) for p in drawn)])
    return _tensors(rows)


def _tensors(rows: Sequence[Sequence[Example]]) -> Batch:
    flat = [example for row in rows for example in row]
    width = max(len(example.ids) for example in flat)
    ids = torch.zeros(len(flat), width, dtype=torch.long)
    mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
    inside = torch.zeros(len(flat), width, dtype=torch.bool)
    for place, example in enumerate(flat):
        length = len(example.ids)
        ids[place, :length] = torch.tensor(example.ids)
        types[place, :length] = torch.tensor(example.types)
        mask[place, :length] = 1
        inside[place, example.passage[0] : example.passage[1]] = True
    return Batch(
        ids=ids,
        mask=mask,
        types=types,
        inside=inside.view(len(rows), -1, width),
        first=torch.tensor([row[0].start for row in rows]),
        last=torch.tensor([row[0].end for row in rows]),
    )
