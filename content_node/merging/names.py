"""Names of the directories of generations, and which of them may be removed. Pure.

The name of a generation has the number of its last write. The first generation is the directory of
the shard as it was built; it is never removed.
"""

from collections.abc import Iterable
from pathlib import Path

MERGE_LOCK = "merge.lock"
"""The lock file that a merge holds."""
LIVE = "live"
"""The subdirectory of a shard for its log and its merged generations."""
_PREFIX, _PARTIAL, _DAMAGED = "generation-", ".partial", ".damaged"
_DIGITS = 20


def generation_path(shard: Path, sequence: int) -> Path:
    """Returns the directory of the generation that holds all writes up to `sequence`."""
    return shard / LIVE / f"{_PREFIX}{sequence:0{_DIGITS}}"


def partial_path(generation: Path) -> Path:
    """Returns the directory in which a generation is written until it is complete."""
    return generation.with_name(generation.name + _PARTIAL)


def damaged_path(generation: Path) -> Path:
    """Returns the directory to which a generation that cannot be served is moved."""
    return generation.with_name(generation.name + _DAMAGED)


def generation_sequence(name: str) -> int | None:
    """Returns the last write of the generation with this directory name; None for other names."""
    digits = name.removeprefix(_PREFIX)
    if name == digits or len(digits) != _DIGITS or not digits.isdecimal() or not digits.isascii():
        return None
    return int(digits)


def newest_first(names: Iterable[str]) -> list[str]:
    """Returns the names of complete generations among `names`, the newest first."""
    return sorted((name for name in names if generation_sequence(name) is not None), reverse=True)


def partial_names(names: Iterable[str]) -> list[str]:
    """Returns the names of generations that interrupted merges left incomplete."""
    return [name for name in names if _is_generation(name, _PARTIAL)]


def obsolete_names(names: Iterable[str], served: int) -> list[str]:
    """Returns the names that can be removed once the generation of write `served` is served.

    These are older generations, and damaged ones that were moved aside.
    """
    obsolete = []
    for name in names:
        sequence = generation_sequence(name)
        if (sequence is not None and sequence < served) or _is_generation(name, _DAMAGED):
            obsolete.append(name)
    return obsolete


def _is_generation(name: str, suffix: str) -> bool:
    """Whether `name` is that of a generation with this suffix."""
    return name.endswith(suffix) and generation_sequence(name.removesuffix(suffix)) is not None
