"""Makes positions of writes opaque to tenants. Pure.

The numbers of the writes of a shard are consecutive, so their differences would tell a tenant how
much other tenants write. Each tenant gets other numbers: a keyed permutation of them, by a Feistel
network (Luby and Rackoff 1988). All fronts use the same one.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from winnow.domain.write import Position
from winnow.errors import invalid_field

_HALF_BITS = 26
_HALF = (1 << _HALF_BITS) - 1
"""A number has two halves of 26 bits: 52 bits together, which a JSON number represents exactly."""
_MAX_SEQUENCE = 1 << 40
"""Limit of sequence numbers. A number of another tenant is almost never below it when opened."""
_ROUNDS = 6


class PositionCipher:
    """Converts sequence numbers of one tenant."""

    def __init__(self, secret: str, tenant: str) -> None:
        """`secret` is known to all fronts and to no tenant: the id of the index."""
        self._key = hashlib.blake2b(f"{secret} {tenant}".encode(), digest_size=32).digest()

    def seal(self, position: Position) -> Position:
        """Returns the position that the tenant gets."""
        left, right = position.sequence >> _HALF_BITS, position.sequence & _HALF
        for number in range(_ROUNDS):
            left, right = right, left ^ self._mix(position.shard, number, right)
        return replace(position, sequence=left << _HALF_BITS | right)

    def open(self, position: Position) -> Position:
        """Returns the position that `seal` got.

        Raises InvalidRequestError if the tenant never got this position.
        """
        left, right = position.sequence >> _HALF_BITS, position.sequence & _HALF
        if left <= _HALF:
            for number in reversed(range(_ROUNDS)):
                left, right = right ^ self._mix(position.shard, number, left), left
            sequence = left << _HALF_BITS | right
            if sequence < _MAX_SEQUENCE:
                return replace(position, sequence=sequence)
        raise invalid_field("after", "a position is not of this index and tenant: leave it out")

    def open_all(self, positions: Iterable[Position]) -> tuple[Position, ...]:
        """Opens several positions."""
        return tuple(map(self.open, positions))

    def _mix(self, shard: int, number: int, half: int) -> int:
        """The round function: 26 pseudo-random bits."""
        data = b"%d %d %d" % (shard, number, half)
        digest = hashlib.blake2b(data, digest_size=4, key=self._key).digest()
        return int.from_bytes(digest, "little") & _HALF
