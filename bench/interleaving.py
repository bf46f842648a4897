"""Interleaves the variants of a measurement, so that drift of the machine affects them alike."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TypeVar

Variant = TypeVar("Variant")
Item = TypeVar("Item")


def interleaved(
    variants: Sequence[Variant], items: Sequence[Item], block: int = 1
) -> Iterator[tuple[Variant, Item]]:
    """Yields every item with every variant, block after block of items.

    The order of the variants reverses from block to block, because the first variant of a block
    finds colder caches.

    Args:
        variants: the variants to compare
        items: the inputs of each variant
        block: number of consecutive items for one variant; long blocks warm the variant's caches

    """
    for number, start in enumerate(range(0, len(items), block)):
        for variant in variants[:: -1 if number % 2 else 1]:
            for item in items[start : start + block]:
                yield variant, item


async def interleaved_latencies(
    variants: Mapping[str, Callable[[Item], Awaitable[object]]], items: Sequence[Item]
) -> dict[str, list[float]]:
    """Calls every variant with every item, interleaved; returns the seconds of each call."""
    latencies: dict[str, list[float]] = {name: [] for name in variants}
    for name, item in interleaved(list(variants), items):
        started = time.perf_counter()
        await variants[name](item)
        latencies[name].append(time.perf_counter() - started)
    return latencies
