"""Divides texts into tokens, in threads. A text may have any length.

The tokenizer divides texts at white space, so a long text is tokenised in segments that end there.
The result is the same, and no call of the tokenizer takes long.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from winnow.domain.text_reading import TextToRead
from winnow.text.tokenizer import Tokenizer, Tokens

SEGMENT_CHARACTERS = 4_000
"""Maximum number of characters of a segment. A segment takes about a millisecond."""
_BATCH_CHARACTERS = 16_000
"""Number of characters after which a batch of segments is complete."""


@dataclass(frozen=True, slots=True)
class TokenisedText:
    """A text that a caller sent, with its tokens."""

    text: TextToRead
    title_ids: tuple[int, ...]
    tokens: Tokens
    """Tokens of the text, with offsets in the text."""


@dataclass(frozen=True, slots=True)
class TextSegment:
    """A part of a text or a title."""

    start: int
    """Offset of the part in the text."""
    text: str


def segments(text: str) -> Iterator[TextSegment]:
    """Yields the segments of a text. A segment ends at white space, if there is any."""
    start = 0
    while len(text) - start > SEGMENT_CHARACTERS:
        limit = start + SEGMENT_CHARACTERS
        end = next((at for at in range(limit, start, -1) if text[at - 1].isspace()), limit)
        yield TextSegment(start, text[start:end])
        start = end
    yield TextSegment(start, text[start:])


def batches(parts: Iterable[TextSegment]) -> Iterator[list[TextSegment]]:
    """Groups segments, so that a batch takes a few milliseconds."""
    batch: list[TextSegment] = []
    characters = 0
    for part in parts:
        batch.append(part)
        characters += len(part.text)
        if characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def tokenise_batch(tokenizer: Tokenizer, batch: Sequence[TextSegment]) -> list[Tokens]:
    """Returns the tokens of each segment, with offsets in its text."""
    found = tokenizer.tokenise_many([part.text for part in batch])
    return [_shift_offsets(tokens, part.start) for part, tokens in zip(batch, found, strict=True)]


def parts_of_texts(texts: Sequence[TextToRead]) -> list[list[TextSegment]]:
    """Returns the segments of the title and of the text of each text, in this order."""
    return [list(segments(part)) for each in texts for part in (each.title, each.text)]


def joined(
    texts: Sequence[TextToRead], parts: Sequence[Sequence[TextSegment]], tokens: Sequence[Tokens]
) -> list[TokenisedText]:
    """Joins the tokens of all segments of `parts` to those of the texts."""
    left = iter(tokens)
    whole = iter([_concatenated([next(left) for _ in each]) for each in parts])
    return [TokenisedText(text, next(whole).ids, next(whole)) for text in texts]


def _shift_offsets(tokens: Tokens, start: int) -> Tokens:
    if not start:
        return tokens
    return Tokens(tokens.ids, tuple((first + start, end + start) for first, end in tokens.offsets))


def _concatenated(parts: Sequence[Tokens]) -> Tokens:
    if len(parts) == 1:
        return parts[0]
    ids = chain.from_iterable(part.ids for part in parts)
    return Tokens(tuple(ids), tuple(chain.from_iterable(part.offsets for part in parts)))
