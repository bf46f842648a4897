"""Warms readers up with one short passage, since no test needs its first reads to be fast."""

import pytest

from winnow.reading import warmup

USUAL_LENGTHS = {name: getattr(warmup, name) for name in ("_LENGTHS", "_TIMED_LENGTHS")}


def shorten(patch: pytest.MonkeyPatch) -> None:
    """Shortens the warm-up of readers that this process opens."""
    for name in USUAL_LENGTHS:
        patch.setattr(warmup, name, (16,))
