"""Tokenises texts to ids with character offsets.

A tokenizer is configured once and never changed, because changing the truncation or padding of a
shared tokenizer is a data race (tokenizers #537).
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from winnow.errors import ArtefactError

# set before the import: this process has its own threads
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import tokenizers


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Ids of the special tokens [CLS] and [SEP]."""

    cls: int
    sep: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids and their offsets in a text."""

    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    """Start and end (exclusive) of each token, in code points."""

    def __len__(self) -> int:
        return len(self.ids)

    def first(self, count: int) -> "Tokens":
        """Returns the first `count` tokens, or all if there are fewer."""
        return Tokens(self.ids[:count], self.offsets[:count])


class Tokenizer:
    """A WordPiece tokenizer, without special tokens, truncation or padding."""

    def __init__(self, path: Path) -> None:
        """Opens `tokenizer.json`; raises ArtefactError unless it is valid, with [CLS] and [SEP]."""
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the bindings raise bare Exception
            raise ArtefactError(f"{path} cannot be opened as a tokenizer: {error}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        ids = self._tokenizer.get_vocab()
        self.vocabulary = max(ids.values(), default=-1) + 1
        """Size of the vocabulary: one more than the greatest token id."""
        words = (each for token, each in ids.items() if len(token) > 1 and token.isalpha())
        self.first_word = min(words, default=self.vocabulary)
        """The lowest id of a token that consists of several letters."""
        self.special = SpecialTokens(self._special("[CLS]", path), self._special("[SEP]", path))

    def tokenise(self, text: str) -> Tokens:
        """Tokenises a text."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return Tokens(tuple(encoding.ids), tuple(encoding.offsets))

    def tokenise_many(self, texts: Sequence[str]) -> Iterable[Tokens]:
        """Tokenises several texts."""
        for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False):
            yield Tokens(tuple(encoding.ids), tuple(encoding.offsets))

    def _special(self, token: str, path: Path) -> int:
        token_id = self._tokenizer.token_to_id(token)
        if token_id is None:
            raise ArtefactError(f"{path} has no token {token}: a BERT vocabulary is needed")
        return int(token_id)
