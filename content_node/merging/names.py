"""Names of the directories of generations, and which of them may be removed. Pure.

A generation is named by its last write. The first generation is the shard's own directory, as it
was built; it is never removed.
"""

from collections.abc import Iterable
from pathlib import Path

LIVE = "live"
"""The directory in a shard that writes go to."""
LOCK = "merge.lock"
_PREFIX, _PARTIAL, _DAMAGED = "generation-", ".partial", ".damaged"
_DIGITS = 20


def generation_path(shard: Path, sequence: int) -> Path:
    """The directory of a generation that holds all writes up to `sequence`."""
    return shard / LIVE / f"{_PREFIX}{sequence:0{_DIGITS}}"


def partial_path(generation: Path) -> Path:
    """Where a generation is written before it is complete."""
    return generation.with_name(generation.name + _PARTIAL)


def damaged_path(generation: Path) -> Path:
    """Where a generation is put that cannot be served."""
    return generation.with_name(generation.name + _DAMAGED)


def sequence_of(name: str) -> int | None:
    """The last write of the generation in a directory of this name; None for another name."""
    digits = name.removeprefix(_PREFIX)
    if name == digits or len(digits) != _DIGITS or not digits.isdecimal() or not digits.isascii():
        return None
    return int(digits)


def newest_first(names: Iterable[str]) -> list[str]:
    """The names of complete generations."""
    return sorted((name for name in names if sequence_of(name) is not None), reverse=True)


def unfinished(names: Iterable[str]) -> list[str]:
    """The names of what interrupted merges left; nothing else is removed at a start."""
    return [name for name in names if _is_of_generation(name, _PARTIAL)]


def outlived(names: Iterable[str], served: int) -> list[str]:
    """The names of all that is useless once the generation of write `served` is served."""
    found = []
    for name in names:
        sequence = sequence_of(name)
        if (sequence is not None and sequence < served) or _is_of_generation(name, _DAMAGED):
            found.append(name)
    return found


def _is_of_generation(name: str, ending: str) -> bool:
    return name.endswith(ending) and sequence_of(name.removesuffix(ending)) is not None
