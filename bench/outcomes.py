"""Latencies and outcomes of a series of questions."""

from collections import Counter
from dataclasses import dataclass, field

from bench.figures import Figure, quantile_figures

NODE_DOWN, NO_REPLICA = " while a node was down", " while no replica was up"
"""Ends of outcomes that are no fault of the cluster."""


@dataclass(slots=True)
class QuestionOutcomes:
    """Latencies and outcomes of a series of questions."""

    latencies: list[float] = field(default_factory=list)
    """Seconds of each question that counts for the latency."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """Number of questions by outcome, such as `complete`, `incomplete` or `late`."""

    def latency_figures(self, name: str) -> list[Figure]:
        """Returns the median and the p99."""
        return quantile_figures("questions", name, self.latencies, 0.5, 0.99)

    def outcome_figures(self, name: str) -> list[Figure]:
        """Returns the counts of outcomes.

        The target is 0, except of `complete` and of outcomes while replicas were missing.
        """
        figures = []
        for outcome, count in sorted(self.outcomes.items()):
            label = f"{name}: {outcome}"
            if outcome == "complete" or outcome.endswith((NODE_DOWN, NO_REPLICA)):
                figures.append(Figure("questions", label, count))
            else:
                figures.append(Figure("questions", label, count, target="0", holds=not count))
        return figures
