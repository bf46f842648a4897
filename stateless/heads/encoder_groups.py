"""Encoder groups: an encoder and the heads that were trained on it; and all groups of a front."""

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

_QUICK = 500
"""Characters that are always tokenised within half a millisecond."""


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A text, its tokens and its encoding: what heads are applied to, and what their spans mean."""

    text: str
    tokens: Tokens
    """The tokens that were encoded."""
    encoding: TextEncoding
    truncated: bool
    """Whether the text had more."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory that heads take, if they run in this process."""

    budget_bytes: int = 0
    warm: tuple[HeadInMemory, ...] = ()


class EncoderGroup:
    """Encodes texts, and knows the heads that were trained on its encoder."""

    def __init__(
        self,
        name: str,
        fingerprint: str,
        *,
        tokenizer: Tokenizer,
        encoder: TextEncoder,
        most_tokens: int,
        heads: Heads,
        memory: Callable[[], Memory] = Memory,
        ahead: BeginEncoderThreadRun = run_no_heads,
    ) -> None:
        """`most_tokens`: that a text keeps, without special tokens; `ahead`: runs heads in the
        thread that encodes.
        """
        self.name, self.fingerprint, self.heads = name, fingerprint, heads
        self.ahead = ahead
        self._tokenizer, self._encoder, self._most = tokenizer, encoder, most_tokens
        self._memory = memory

    async def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        """All tokens of each text; of long ones in a thread, for the event loop's sake."""
        if sum(map(len, texts)) <= _QUICK:
            return self._tokenise(texts)
        return await asyncio.to_thread(self._tokenise, texts)

    async def encode(
        self, text: str, tokens: Tokens, client: str = "", on_encoded: OnEncoded | None = None
    ) -> EncodedText:
        """Encodes the first tokens of a text; `client` and `on_encoded` are for the encoder."""
        kept = tokens.first(self._most)
        encoding = await self._encoder.encode(kept.ids, client, on_encoded)
        return EncodedText(text, kept, encoding, len(tokens) > self._most)

    def info(self) -> EncoderGroupInfo:
        """What the encoder group is, and what it has in memory."""
        memory = self._memory()
        return EncoderGroupInfo(self.name, self.fingerprint, memory.budget_bytes, memory.warm)

    async def warm_up(self) -> None:
        """Encodes at several lengths: first runs at a length are slow."""
        await self._encoder.warm_up(self._most)

    def _tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        return [self._tokenizer.tokenise(text) for text in texts]


class EncoderGroups:
    """Encoder groups by name; the first one is the default."""

    def __init__(self, groups: Sequence[EncoderGroup] = ()) -> None:
        """`encoder groups`: none where the front serves no heads.

        Raises:
            WinnowError: two have the same name.

        """
        self._groups: dict[str, EncoderGroup] = {}
        for group in groups:
            if group.name in self._groups:
                raise WinnowError(
                    f"two encoder groups have the name {group.name}; the default one has its "
                    "bundle's name: give the other one another name"
                )
            self._groups[group.name] = group

    @property
    def default(self) -> EncoderGroup:
        """The group of requests that name none; raises UnavailableError if there is no group."""
        if not self._groups:
            raise UnavailableError("this front serves no heads: start it with --heads STORE")
        return next(iter(self._groups.values()))

    def find(self, name: str) -> EncoderGroup:
        """The encoder group of that name, or the default one if it is empty.

        Raises:
            NotFoundError: there is none; names those that there are.
            UnavailableError: there is no encoder group at all.

        """
        default = self.default
        if name and name not in self._groups:
            known = ", ".join(self._groups)
            raise NotFoundError(f"there is no encoder group {quoted(name)} here: there is {known}")
        return self._groups[name] if name else default

    def get(self, name: str) -> EncoderGroup | None:
        """The encoder group of that name, if it is here."""
        return self._groups.get(name)

    def all(self) -> list[EncoderGroup]:
        """All encoder groups, the default one first."""
        return list(self._groups.values())

    async def warm_up(self) -> None:
        """Warms up the encoder of each encoder group."""
        for group in self.all():
            await group.warm_up()
