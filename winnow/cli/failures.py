"""Why questions failed: counted by status, with the first words of each. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed questions, by gRPC status."""

    errors: dict[str, int] = field(default_factory=dict)
    """How many, the most frequent first."""
    said: dict[str, str] = field(default_factory=dict)
    """What the first of them said."""

    def lines(self) -> list[str]:
        """For people."""
        return [f"{count} failed: {self.said[status]}" for status, count in self.errors.items()]


def failures(messages: Iterable[str]) -> Failures:
    """Counts messages that begin with a status and a colon."""
    counts: Counter[str] = Counter()
    said: dict[str, str] = {}
    for message in messages:
        status = message.partition(":")[0]
        counts[status] += 1
        said.setdefault(status, message)
    return Failures(dict(counts.most_common()), said)
