"""Text to token ids with character offsets.

A tokenizer is configured once, here, and never changed: changing truncation or padding on a shared
one races with its users (tokenizers #537).
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from winnow.errors import ArtefactError

# before the import: parallelism belongs to our own threads
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import tokenizers


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Ids of the tokens that frame sequences."""

    cls: int
    sep: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids and, for each, its first character and one past its last, in code points."""

    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.ids)

    def first(self, most: int) -> "Tokens":
        """The first tokens, at most `most`."""
        return Tokens(self.ids[:most], self.offsets[:most])


class Tokenizer:
    """A WordPiece tokenizer, without special tokens, truncation or padding."""

    def __init__(self, path: Path) -> None:
        """Opens `tokenizer.json`; raises ArtefactError if it is none, or lacks [CLS] or [SEP]."""
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the bindings raise bare Exception
            raise ArtefactError(f"{path} cannot be opened as a tokenizer: {error}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.vocabulary = max(self._tokenizer.get_vocab().values(), default=-1) + 1
        """One more than the greatest token id."""
        self.special = SpecialTokens(self._special("[CLS]", path), self._special("[SEP]", path))

    def tokenise(self, text: str) -> Tokens:
        """The tokens of `text`."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return Tokens(tuple(encoding.ids), tuple(encoding.offsets))

    def tokenise_many(self, texts: Sequence[str]) -> Iterable[Tokens]:
        """The tokens of each text."""
        for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False):
            yield Tokens(tuple(encoding.ids), tuple(encoding.offsets))

    def _special(self, token: str, path: Path) -> int:
        found = self._tokenizer.token_to_id(token)
        if found is None:
            raise ArtefactError(f"{path} has no token {token}: a BERT vocabulary is needed")
        return int(found)
