"""The order in which variants are measured, so that drift of the machine is no difference."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

Variant = TypeVar("Variant")
Item = TypeVar("Item")


def interleaved(
    variants: Sequence[Variant], items: Sequence[Item], block: int = 1
) -> Iterator[tuple[Variant, Item]]:
    """Yields every item with every variant, block after block of items.

    The order of the variants is reversed from one block to the next: the first variant of a block
    finds colder caches.

    Args:
        variants: what is compared
        items: what each variant is measured on
        block: consecutive items of one variant; more of them warm the variant's own caches

    """
    for number, start in enumerate(range(0, len(items), block)):
        for variant in variants[:: -1 if number % 2 else 1]:
            for item in items[start : start + block]:
                yield variant, item
