"""Checks that filters name fields that some shard has. Pure."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate

from winnow.domain.shard import MOST_FIELDS, ShardInfo
from winnow.errors import Violation
from winnow.filtering import FIELD
from winnow.quoting import quoted, shortened

_MOST_NAMED = 20
_MOST_BYTES = 600
"""Most bytes of all names in an error. The error travels in metadata, of which gRPC lets 8 KB
through. It stands there three times, once with three bytes for each character that is not ASCII.
"""
_MOST_COMPARED = 100
"""Most names whose spellings are compared, which takes some microseconds each."""


def fields_of_index(infos: Iterable[ShardInfo]) -> frozenset[str] | None:
    """The fields of all shards. None if a shard was never heard of, or may have further fields."""
    known = list(infos)
    if any(not info.generation or len(info.fields) >= MOST_FIELDS for info in known):
        return None
    return frozenset(name for info in known for name in info.fields)


def unknown_fields(named: Sequence[str], known: Collection[str]) -> Iterator[Violation]:
    """A violation if a field is not known: names the first unknown one, and known fields."""
    unknown = [name for name in dict.fromkeys(named) if name not in known]
    if not unknown:
        return
    first, others = unknown[0], len(unknown) - 1
    also = f", nor {others} more that it names" if others else ""
    yield Violation(FIELD, f"there is no field {quoted(first)}{also}: {_there_are(first, known)}")


def _there_are(unknown: str, known: Collection[str]) -> str:
    """The known fields whose names are most like the unknown one."""
    if not known:
        return "no passage has metadata"
    nearest = _nearest(unknown, known)
    others = len(known) - len(nearest)
    more = f" and {others} more" if others else ""
    return f"known are {', '.join(nearest)}{more}"


def _nearest(name: str, known: Collection[str]) -> list[str]:
    """Some known names, shortened, those spelled most alike first."""
    some = sorted(known)
    if len(some) > _MOST_COMPARED:
        some.sort(key=lambda each: each[:1].lower() != name[:1].lower())
    wanted = _pairs(name)
    by_likeness = sorted(some[:_MOST_COMPARED], key=lambda each: -_likeness(wanted, _pairs(each)))
    shown = list(map(shortened, by_likeness[:_MOST_NAMED]))
    ends = accumulate(len(each.encode()) for each in shown)
    return [each for each, end in zip(shown, ends, strict=True) if end <= _MOST_BYTES] or shown[:1]


def _pairs(name: str) -> set[str]:
    """Pairs of neighbouring letters; the ends of the name count as letters."""
    framed = f" {name.lower()} "
    return {framed[place : place + 2] for place in range(len(framed) - 1)}


def _likeness(one: set[str], other: set[str]) -> float:
    """What share of their pairs two names have in common (Dice 1945)."""
    return 2 * len(one & other) / (len(one) + len(other))
