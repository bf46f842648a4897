"""Decides which texts are encoded in one run.

Knows the lengths of texts and how long the first text has waited; knows neither models nor clocks.
The number of texts and the number of tokens per run are limited. Padding to the longest text counts
as tokens, since it costs as much. Texts keep their order of arrival, so that none waits for ever.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of a run: its size, and how long it waits for more texts."""

    texts: int = 16
    tokens: int = 4_096
    """Maximum number of tokens per run, with padding and special tokens."""
    wait: float = 0.003
    """Maximum seconds that the first text waits for more texts."""


class EncoderBatch:
    """The texts of the next run of an encoder, as their number and their longest length.

    Texts are added until the run starts.
    """

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._texts = self._max_tokens = 0

    def has_room_for(self, tokens: int) -> bool:
        """Whether a text of `tokens` tokens fits into the run; the first text always does."""
        if not self._texts:
            return True
        max_tokens = max(self._max_tokens, tokens)
        return (
            self._texts < self._limits.texts
            and self._padded_tokens(max_tokens) <= self._limits.tokens
        )

    def add(self, tokens: int) -> None:
        """Adds a text of `tokens` tokens."""
        self._texts += 1
        self._max_tokens = max(self._max_tokens, tokens)

    def remaining_wait(self, waited: float) -> float:
        """Seconds to wait for more texts; 0 if the run is full.

        `waited`: seconds that the first text has already waited.
        """
        if not self.has_room_for(1):
            return 0.0
        return max(self._limits.wait - waited, 0.0)

    def _padded_tokens(self, max_tokens: int) -> int:
        return (self._texts + 1) * max_tokens
