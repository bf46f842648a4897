"""Decides which texts are encoded in one run.

Knows how long texts are and how long the first one waited; knows neither models nor clocks. A run
is bounded in texts and in tokens. Padding to the longest text counts, since it costs as much. Texts
stay in their order of arrival, so that none is passed over.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How large a run may be, and how long a text may wait for others."""

    texts: int = 16
    tokens: int = 4_096
    """Most tokens of all texts of a run, padding and special tokens included."""
    wait: float = 0.003
    """Seconds that the first text waits for others."""


class EncoderBatch:
    """A run that is being filled."""

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._texts = self._longest = 0

    def takes(self, tokens: int) -> bool:
        """Whether a text of `tokens` tokens has room; the first one always has."""
        if not self._texts:
            return True
        longest = max(self._longest, tokens)
        return self._texts < self._limits.texts and self._cost(longest) <= self._limits.tokens

    def add(self, tokens: int) -> None:
        """Puts a text in."""
        self._texts += 1
        self._longest = max(self._longest, tokens)

    def patience(self, waited: float) -> float:
        """Seconds to wait for more texts, if the first one has `waited`; 0 if the run is full."""
        if not self.takes(1):
            return 0.0
        return max(self._limits.wait - waited, 0.0)

    def _cost(self, longest: int) -> int:
        return (self._texts + 1) * longest
