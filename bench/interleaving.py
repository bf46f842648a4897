"""Interleaves the variants of a measurement, so that drift of the machine affects them alike."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")


async def interleaved_latencies(
    variants: Mapping[str, Callable[[Item], Awaitable[object]]], items: Sequence[Item]
) -> dict[str, list[float]]:
    """Calls every variant with an item, then with the next item; returns the seconds of each call.

    The order of the variants reverses from item to item, because the first one finds colder caches.
    """
    latencies: dict[str, list[float]] = {name: [] for name in variants}
    for number, item in enumerate(items):
        for name in list(variants)[:: -1 if number % 2 else 1]:
            started = time.perf_counter()
            await variants[name](item)
            latencies[name].append(time.perf_counter() - started)
    return latencies
