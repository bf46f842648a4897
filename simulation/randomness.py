"""Randomness of the code that ships, drawn from the seed of the simulation."""

import os
import random

_real_urandom, _RealRandom = os.urandom, random.Random


class _Source:
    """The generator of the running simulation, if any."""

    rng: random.Random | None = None


def set_source(rng: random.Random | None) -> None:
    """Makes all randomness come from a generator; from the machine with None."""
    _Source.rng = rng


def seeded(seed: object) -> random.Random:
    """Returns a generator for a seed, which may be any value with a stable text."""
    return _RealRandom(str(seed))


class _DrawnRandom(random.Random):
    """A generator that has its seed from the simulation unless it is given one."""

    def __init__(self, seed: object = None) -> None:
        if seed is None and _Source.rng is not None:
            seed = _Source.rng.getrandbits(64)
        super().__init__(seed)  # type: ignore[arg-type]


def _urandom(count: int) -> bytes:
    return _Source.rng.randbytes(count) if _Source.rng is not None else _real_urandom(count)


def install() -> None:
    """Replaces the sources of randomness."""
    random.Random = _DrawnRandom  # type: ignore[misc,assignment]
    os.urandom = _urandom
