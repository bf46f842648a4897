"""Encoder groups: each has an encoder and the heads that were trained on it."""

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
"""Longer texts are tokenised in a thread; this length takes less than half a millisecond."""


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A text with its tokens and its encoding; heads return spans of these tokens."""

    text: str
    tokens: Tokens
    """The tokens that were encoded."""
    encoding: TextEncoding
    truncated: bool
    """Whether tokens at the end of the text were left out."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of the heads that run in this process."""

    budget_bytes: int = 0
    heads: tuple[HeadInMemory, ...] = ()


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
        memory: Callable[[], Memory] = Memory,
        begin_run: BeginEncoderThreadRun = run_no_heads,
    ) -> None:
        """`max_tokens`: limit of the tokens of a text, without special tokens; `begin_run` begins a
        run of heads in the thread that encodes.
        """
        self.name, self.fingerprint, self.heads = name, fingerprint, heads
        self.begin_run = begin_run
        self._tokenizer, self._encoder, self._max_tokens = tokenizer, encoder, max_tokens
        self._memory = memory

    async def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokenises texts completely; long texts in a thread, to keep the event loop free."""
        if sum(map(len, texts)) <= _MAX_INLINE_CHARACTERS:
            return self._tokenise(texts)
        return await asyncio.to_thread(self._tokenise, texts)

    async def encode(
        self, text: str, tokens: Tokens, client: str = "", on_encoded: OnEncoded | None = None
    ) -> EncodedText:
        """Encodes the first tokens of a text; `client` and `on_encoded` are for the encoder."""
        kept = tokens.first(self._max_tokens)
        encoding = await self._encoder.encode(kept.ids, client, on_encoded)
        return EncodedText(text, kept, encoding, len(tokens) > self._max_tokens)

    def info(self) -> EncoderGroupInfo:
        """The name, fingerprint and heads in memory of the encoder group."""
        memory = self._memory()
        return EncoderGroupInfo(self.name, self.fingerprint, memory.budget_bytes, memory.heads)

    async def warm_up(self) -> None:
        """Encodes texts of several lengths: the first run at a length is slow."""
        await self._encoder.warm_up(self._max_tokens)

    def _tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        return [self._tokenizer.tokenise(text) for text in texts]


class EncoderGroups:
    """Encoder groups by name; the first one is the default."""

    def __init__(self, groups: Sequence[EncoderGroup] = ()) -> None:
        """`groups`: empty if the front serves no heads.

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
        """The encoder group of requests that name none; raises UnavailableError without groups."""
        if not self._groups:
            raise UnavailableError("this front serves no heads: start it with --heads STORE")
        return next(iter(self._groups.values()))

    def find(self, name: str) -> EncoderGroup:
        """The encoder group `name`, or the default group if it is empty.

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
        """The encoder group `name`; None if it is unknown."""
        return self._groups.get(name)

    def all(self) -> list[EncoderGroup]:
        """All encoder groups, the default group first."""
        return list(self._groups.values())

    async def warm_up(self) -> None:
        """Warms up the encoder of each encoder group."""
        for group in self.all():
            await group.warm_up()
