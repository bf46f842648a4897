"""Which of the trained readers is meant."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReaderKind:
    """Which of the trained readers a bundle has."""

    layers: int | None = None
    """Of a smaller one; none is the whole one."""
    apart: int = 0
    """Layers in which it takes questions and passages apart."""

    def __str__(self) -> str:
        if self.apart:
            return f"the one with {self.apart} layers apart"
        return "the whole one" if self.layers is None else f"the one of {self.layers} layers"
