"""Maps the passages of an index to its shards, which may be split in two. Pure.

An index is built with `N` shards. The hash of a passage's id decides its shard. In an index with
tenants, the hash of its tenant does. A split divides one shard by the next bit of the hash of the
id, and changes no other shard. The halves of shard `n` get the numbers `N + 2n` and `N + 2n + 1`.
So a shard number always stands for the same set of ids.
"""

from collections.abc import Collection, Iterator

from winnow.domain.shard import MAX_SHARDS, place_of, shard_of_tenant
from winnow.domain.tenant import is_whole_tenant

MAX_SPLITS = 12
"""Maximum depth of splits: how often a shard, its half, the half's half … can be split."""


class Partition:
    """The shards of an index. Each passage belongs to exactly one of them."""

    def __init__(self, built: int, shards: Collection[int]) -> None:
        """`shards`: numbers of all shards; `built`: number of shards that the index was built with.

        Raises ValueError unless each passage belongs to exactly one of `shards`.
        """
        if not 1 <= built <= MAX_SHARDS:
            raise ValueError(f"an index is built with 1 to {MAX_SHARDS:,} shards, not {built}")
        self.built = built
        self.shards = tuple(sorted(set(shards)))
        """The numbers of the shards, ascending."""
        self._known = frozenset(self.shards)
        if len(self._known) < len(shards):
            raise ValueError("the partition names a shard twice")
        for shard in self.shards:
            if not is_shard_number(shard, built):
                raise ValueError(f"there can be no shard {shard} of an index built with {built}")
            for parent in ancestors_of(shard, built):
                if parent in self._known:
                    raise ValueError(
                        f"the partition has shard {parent} and also its part, shard {shard}"
                    )
        if lacking := set(range(built)) - {root_of(each, built) for each in self.shards}:
            raise ValueError(f"the partition lacks shard {min(lacking)}")
        covered = sum(2 ** (MAX_SPLITS - depth_of(each, built)) for each in self.shards)
        if covered < built * 2**MAX_SPLITS:
            raise ValueError("it lacks a half of a shard that was split")

    def __eq__(self, other: object) -> bool:
        """Whether both have the same shards."""
        if not isinstance(other, Partition):
            return NotImplemented
        return (self.built, self.shards) == (other.built, other.shards)

    def __hash__(self) -> int:
        """Hash that is equal for equal partitions."""
        return hash((self.built, self.shards))

    def __len__(self) -> int:
        """Number of shards."""
        return len(self.shards)

    def __iter__(self) -> Iterator[int]:
        """Yields the numbers of the shards, ascending."""
        return iter(self.shards)

    def __contains__(self, shard: object) -> bool:
        """Whether the index has a shard with this number."""
        return shard in self._known

    def shard_of(self, passage_id: str) -> int:
        """The shard of a passage."""
        shard, rest = place_of(passage_id, self.built)
        while shard not in self._known:
            rest, bit = divmod(rest, 2)
            shard = halves_of(shard, self.built)[bit]
        return shard

    def shards_of_tenant(self, tenant: str) -> list[int]:
        """The shards that may hold passages of a tenant; all shards for an empty name."""
        if not tenant:
            return list(self.shards)
        return self.parts_of(shard_of_tenant(tenant, self.built))

    def parts_of(self, shard: int) -> list[int]:
        """The current shards that hold the passages of the shard with this number.

        Returns the shard itself if it exists, its parts if it was split, or the shard that contains
        it if that is not split yet. Empty if no shard can have this number.
        """
        if not is_shard_number(shard, self.built):
            return []
        line = (shard, *ancestors_of(shard, self.built))
        if own := [each for each in line if each in self._known]:
            return own
        return [each for each in self.shards if shard in ancestors_of(each, self.built)]

    def split(self, shard: int) -> "Partition":
        """The partition after a split of `shard`; raises ValueError if there is no such shard."""
        if shard not in self._known:
            raise ValueError(f"there is no shard {shard}")
        return Partition(self.built, self._known - {shard} | set(halves_of(shard, self.built)))


def halves_of(shard: int, built: int) -> tuple[int, int]:
    """The numbers of the halves of a shard."""
    return built + 2 * shard, built + 2 * shard + 1


def parent_of(shard: int, built: int) -> int | None:
    """The number of the shard that this one is a half of; None for a shard from the build."""
    return None if shard < built else (shard - built) // 2


def ancestors_of(shard: int, built: int) -> Iterator[int]:
    """Yields the shards that contain this one: its parent first, the shard from the build last."""
    while (parent := parent_of(shard, built)) is not None:
        yield parent
        shard = parent


def shares_passages(one: int, other: int, built: int) -> bool:
    """Whether two numbers stand for the same shard, or one for a part of the other."""
    return one in (other, *ancestors_of(other, built)) or other in ancestors_of(one, built)


def root_of(shard: int, built: int) -> int:
    """The shard from the build that contains this one; may be the shard itself."""
    return next((each for each in ancestors_of(shard, built) if each < built), shard)


def depth_of(shard: int, built: int) -> int:
    """Number of splits between the shard from the build and this one."""
    return sum(1 for _ in ancestors_of(shard, built))


def is_shard_number(shard: int, built_shards: int) -> bool:
    """Whether an index built with `built_shards` shards can have a shard with this number."""
    return shard >= 0 and shard < built_shards * (2 ** (MAX_SPLITS + 1) - 1)


def holds(shard: int, built: int, passage_id: str) -> bool:
    """Whether a passage belongs to the shard or, if it was split, to one of its parts.

    The deletion of a whole tenant belongs to all parts of the shard from the build.
    """
    number, rest = place_of(passage_id, built)
    if is_whole_tenant(passage_id):
        return number == root_of(shard, built)
    for _ in range(depth_of(shard, built)):
        rest, bit = divmod(rest, 2)
        number = halves_of(number, built)[bit]
    return number == shard
