"""Encoder groups. Each group has an encoder, and the heads that were trained on this encoder."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from winnow.domain.prediction import EncoderGroupInfo, HeadInMemory
from winnow.errors import NotFoundError, UnavailableError, WinnowError
from winnow.heads.heads import Heads
from winnow.heads.run import BeginEncoderThreadRun, run_no_heads
from winnow.quoting import quoted
from winnow.text.encoder import OnEncoded, TextEncoder, TextEncoding
from winnow.text.tokenizer import Tokenizer, Tokens

_MAX_INLINE_CHARACTERS = 500
"""Longer texts are tokenised in a thread. Texts of this length take less than half a millisecond.
"""


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A text with its tokens and its encoding. Heads return spans of these tokens."""

    text: str
    tokens: Tokens
    """The tokens that were encoded."""
    encoding: TextEncoding
    truncated: bool
    """Whether tokens at the end of the text were left out."""


@dataclass(frozen=True, slots=True)
class HeadMemory:
    """The memory of an encoder group's heads that run in this process."""

    budget_bytes: int = 0
    """Maximum memory for heads, in bytes; 0 if no heads run in this process."""
    heads: tuple[HeadInMemory, ...] = ()
    """The heads in memory."""


class EncoderGroup:
    """An encoder, and the heads that were trained on it."""

    def __init__(
        self,
        name: str,
        fingerprint: str,
        *,
        tokenizer: Tokenizer,
        encoder: TextEncoder,
        max_tokens: int,
        heads: Heads,
        memory: Callable[[], HeadMemory] = HeadMemory,
        begin_run: BeginEncoderThreadRun = run_no_heads,
    ) -> None:
        """Creates a group.

        Args:
            name: name of the group.
            fingerprint: fingerprint of the encoder.
            tokenizer: tokenises texts for the encoder.
            encoder: encodes texts.
            max_tokens: maximum number of tokens of a text, without special tokens.
            heads: applies the heads.
            memory: returns the memory of heads that run in this process.
            begin_run: starts a run of heads in the thread that encodes a text.

        """
        self.name, self.fingerprint, self.heads = name, fingerprint, heads
        self.begin_run = begin_run
        self._tokenizer, self._encoder, self._max_tokens = tokenizer, encoder, max_tokens
        self._memory = memory

    async def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokenises texts without truncating them. Long texts are tokenised in a thread, so that
        the event loop stays free.
        """
        if sum(map(len, texts)) <= _MAX_INLINE_CHARACTERS:
            return self._tokenise(texts)
        return await asyncio.to_thread(self._tokenise, texts)

    async def encode(
        self, text: str, tokens: Tokens, client: str = "", on_encoded: OnEncoded | None = None
    ) -> EncodedText:
        """Truncates and encodes a text. `client` and `on_encoded` are passed to the encoder."""
        kept = tokens.first(self._max_tokens)
        encoding = await self._encoder.encode(kept.ids, client, on_encoded)
        return EncodedText(text, kept, encoding, len(tokens) > self._max_tokens)

    def info(self) -> EncoderGroupInfo:
        """Describes the encoder group: its name, its fingerprint and its heads in memory."""
        memory = self._memory()
        return EncoderGroupInfo(self.name, self.fingerprint, memory.budget_bytes, memory.heads)

    async def warm_up(self) -> None:
        """Encodes texts of several lengths, because the first run at each length is slow."""
        await self._encoder.warm_up(self._max_tokens)

    def _tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        return [self._tokenizer.tokenise(text) for text in texts]


class EncoderGroups:
    """The encoder groups of a front, by name. The first group is the default."""

    def __init__(self, groups: Sequence[EncoderGroup] = ()) -> None:
        """`groups` is empty if the front serves no heads.

        Raises:
            WinnowError: two groups have the same name.

        """
        self._groups: dict[str, EncoderGroup] = {}
        for group in groups:
            if group.name in self._groups:
                raise WinnowError(
                    f"two encoder groups have the name {group.name}: choose another NAME "
                    "in --rings NAME=BUNDLE,STORE (the default group is named after its bundle)"
                )
            self._groups[group.name] = group

    @property
    def default(self) -> EncoderGroup:
        """The encoder group of requests that name no group.

        Raises UnavailableError if the front serves no heads.
        """
        if not self._groups:
            raise UnavailableError("this front serves no heads: start it with --heads STORE")
        return next(iter(self._groups.values()))

    def find(self, name: str) -> EncoderGroup:
        """The encoder group `name`, or the default group if `name` is empty.

        Raises:
            NotFoundError: the group is unknown; the error names the known groups.
            UnavailableError: the front serves no heads.

        """
        default = self.default
        if name and name not in self._groups:
            known = ", ".join(self._groups)
            raise NotFoundError(f"unknown encoder group {quoted(name)}: this front has {known}")
        return self._groups[name] if name else default

    def get(self, name: str) -> EncoderGroup | None:
        """The encoder group `name`; None if the group is unknown."""
        return self._groups.get(name)

    def all(self) -> list[EncoderGroup]:
        """All encoder groups, the default group first."""
        return list(self._groups.values())

    async def warm_up(self) -> None:
        """Warms up the encoder of each encoder group."""
        for group in self.all():
            await group.warm_up()
