"""Whether a shard holds and finds what it should. Pure but for the asking."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.crashes.made_up import tokens, vector
from bench.crashes.model import Draft, Model
from bench.crashes.process import Process

_NEAREST = 5


class WrongError(Exception):
    """A shard that is not what it should be."""


def survivor(model: Model, unknown: Sequence[Sequence[Draft]], dump: dict[str, Any]) -> Model:
    """What was stored of calls that nobody was told of: some of them from the first on, whole.

    Raises:
        WrongError: none of what may be there is there.

    """
    texts, sequence = dump["texts"], dump["sequence"]
    for count in range(len(unknown) + 1):
        found = model.after([draft for call in unknown[:count] for draft in call])
        same = texts == {name: text for name, (text, _) in found.texts.items()}
        if same and sequence == found.sequence:
            return found
    there = {name: text for name, (text, _) in model.texts.items()}
    lost = sorted(there.items() - texts.items())
    more = sorted(texts.items() - there.items())
    raise WrongError(
        f"up to write {sequence}, {model.sequence} was acknowledged, and {len(unknown)} calls were "
        f"not: lost {lost[:5]}, more {more[:5]}"
    )


async def expect_found(process: Process, model: Model, text: str) -> None:
    """Raises WrongError if a search finds other passages than comparing with all does."""
    found = await process.tell("search", text)
    asked = vector(text)
    texts = [each for each, _ in model.texts.values()]
    near = sorted(texts, key=lambda each: float(np.sum((vector(each) - asked) ** 2)))
    if found["near"] != near[:_NEAREST]:
        raise WrongError(f"the nearest of {text!r} are {near[:_NEAREST]}, found {found['near']}")
    words = set(tokens(text))
    having = sorted(name for name, (each, _) in model.texts.items() if words & set(tokens(each)))
    if found["words"] != having:
        raise WrongError(f"{having} have a word of {text!r}, found {found['words']}")
