"""How the passages of an index map to its shards, some of which were split in two. Pure.

An index is built with a number of shards, and the hash of an id decides the shard of a passage. A
shard splits by the next bit of the same hash, so no other shard changes. The halves of shard `n` of
an index that was built with `N` shards have the numbers `N + 2n` and `N + 2n + 1`. So a number
stands for the same passages for ever, and it is never used for others.
"""

from collections.abc import Collection, Iterator

from winnow.domain.shard import MAX_SHARDS, passage_hash

MAX_SPLITS = 12
"""How often a shard and its halves can be split."""


class Partition:
    """The shards of an index. Each passage belongs to exactly one of them."""

    def __init__(self, built: int, shards: Collection[int]) -> None:
        """Takes the numbers of the `shards` of an index that was built with `built` shards.

        Raises ValueError unless each passage belongs to exactly one of them.
        """
        if not 1 <= built <= MAX_SHARDS:
            raise ValueError(f"an index is built with 1 to {MAX_SHARDS:,} shards, not {built}")
        self.built = built
        self.shards = tuple(sorted(set(shards)))
        """The numbers of the shards, ascending."""
        self._known = frozenset(self.shards)
        if len(self._known) < len(shards):
            raise ValueError("it names a shard twice")
        for shard in self.shards:
            if not is_number(shard, built):
                raise ValueError(f"there can be no shard {shard} of an index built with {built}")
            for parent in ancestors_of(shard, built):
                if parent in self._known:
                    raise ValueError(f"it has shard {parent} and a part of it, shard {shard}")
        if lacking := set(range(built)) - {root_of(each, built) for each in self.shards}:
            raise ValueError(f"it lacks shard {min(lacking)}")
        covered = sum(2 ** (MAX_SPLITS - depth_of(each, built)) for each in self.shards)
        if covered < built * 2**MAX_SPLITS:
            raise ValueError("it lacks a half of a shard that was split")

    @classmethod
    def as_built(cls, built: int) -> "Partition":
        """The partition of an index of which no shard was split."""
        return cls(built, range(built))

    def __eq__(self, other: object) -> bool:
        """Whether both have the same shards."""
        if not isinstance(other, Partition):
            return NotImplemented
        return (self.built, self.shards) == (other.built, other.shards)

    def __hash__(self) -> int:
        """Equal for equal partitions."""
        return hash((self.built, self.shards))

    def __len__(self) -> int:
        """Number of shards."""
        return len(self.shards)

    def __iter__(self) -> Iterator[int]:
        """Yields the numbers of the shards, ascending."""
        return iter(self.shards)

    def __contains__(self, shard: object) -> bool:
        """Whether this is the number of a shard."""
        return shard in self._known

    def shard_of(self, passage_id: str) -> int:
        """The shard of a passage."""
        rest, shard = divmod(passage_hash(passage_id), self.built)
        while shard not in self._known:
            rest, bit = divmod(rest, 2)
            shard = halves_of(shard, self.built)[bit]
        return shard

    def parts_of(self, shard: int) -> list[int]:
        """The shards that hold passages of the shard with this number.

        These are its parts if it was split since, the shard that it is a part of if this partition
        is older, or the shard itself. Empty if there is no such shard.
        """
        if not is_number(shard, self.built):
            return []
        line = (shard, *ancestors_of(shard, self.built))
        if own := [each for each in line if each in self._known]:
            return own
        return [each for each in self.shards if shard in ancestors_of(each, self.built)]

    def split(self, shard: int) -> "Partition":
        """The partition after a split; raises ValueError if this has no such shard."""
        if shard not in self._known:
            raise ValueError(f"there is no shard {shard}")
        return Partition(self.built, self._known - {shard} | set(halves_of(shard, self.built)))


def halves_of(shard: int, built: int) -> tuple[int, int]:
    """The numbers of the halves of a shard."""
    return built + 2 * shard, built + 2 * shard + 1


def parent_of(shard: int, built: int) -> int | None:
    """The number of the shard that this one is a half of; None for a shard as built."""
    return None if shard < built else (shard - built) // 2


def ancestors_of(shard: int, built: int) -> Iterator[int]:
    """Yields the shards that this one is a part of, the smallest first."""
    while (parent := parent_of(shard, built)) is not None:
        yield parent
        shard = parent


def root_of(shard: int, built: int) -> int:
    """The shard as built that this one is a part of, or that it is."""
    return next((each for each in ancestors_of(shard, built) if each < built), shard)


def depth_of(shard: int, built: int) -> int:
    """How often a shard was split until there was this one."""
    return sum(1 for _ in ancestors_of(shard, built))


def is_number(shard: int, built: int) -> bool:
    """Whether a shard of an index that was built with `built` shards can have this number."""
    return shard >= 0 and shard < built * (2 ** (MAX_SPLITS + 1) - 1)


def holds(shard: int, built: int, passage_id: str) -> bool:
    """Whether a passage belongs to the shard, or to a part of it."""
    rest, number = divmod(passage_hash(passage_id), built)
    for _ in range(depth_of(shard, built)):
        rest, bit = divmod(rest, 2)
        number = halves_of(number, built)[bit]
    return number == shard
