"""Token vectors of unmerged passages, which a node hands to the process of a merge.

They are in a file without a name, which nothing has to remove. So the merge need not run the
encoder for passages whose token vectors the node already has.
"""

import json
import os
import struct
from collections.abc import Iterable
from typing import IO
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from winnow.errors import ArtefactError
from winnow.reading.states_kind import TOKEN_VECTORS, with_checksum

_HEADER = struct.Struct("<QI")
"""Start and checksum of the names of the passages, which come last."""
ComputedPassage = tuple[str, int, NDArray[np.int8]]
"""A passage id, the sequence number of its write, and the levels of its tokens, [tokens, values].
"""


def write_tokens(file: IO[bytes], fingerprint: str, passages: Iterable[ComputedPassage]) -> None:
    """Writes token vectors to an empty file. Raises OSError if there is no room."""
    names = []
    file.seek(_HEADER.size)
    for identifier, sequence, levels in passages:
        data = with_checksum(levels.tobytes())
        names.append((identifier, sequence, file.tell(), len(data), levels.shape[1]))
        file.write(data)
    start = file.tell()
    content = json.dumps({"fingerprint": fingerprint, "passages": names}).encode()
    file.write(content)
    file.seek(0)
    file.write(_HEADER.pack(start, crc32(content)))
    file.flush()


class HandedTokens:
    """The token vectors in a file that `write_tokens` wrote, as `ReusableStates`."""

    def __init__(self, descriptor: int) -> None:
        """Reads the names of the passages. The file must stay open.

        Raises ArtefactError if the file is damaged, or cannot be read.
        """
        self._descriptor = descriptor
        try:
            start, checksum = _HEADER.unpack(os.pread(descriptor, _HEADER.size, 0))
            names = os.pread(descriptor, os.fstat(descriptor).st_size - start, start)
        except (OSError, OverflowError, struct.error) as error:
            raise ArtefactError(f"the node handed over no token vectors: {error}") from error
        if crc32(names) != checksum:
            raise ArtefactError("the node handed over damaged token vectors")
        content = json.loads(names)
        self.fingerprint: str = content["fingerprint"]
        """Fingerprint of the token vectors."""
        self._places = {
            (identifier, sequence): (begin, size, width)
            for identifier, sequence, begin, size, width in content["passages"]
        }

    def packed(self, identifier: str, sequence: int) -> bytes:
        """Returns the token vectors of a passage version in the format on disk; empty without them.

        Damaged ones count as missing.
        """
        place = self._places.get((identifier, sequence))
        if place is None:
            return b""
        begin, size, width = place
        try:
            data = os.pread(self._descriptor, size, begin)
            TOKEN_VECTORS.check(data, width)
        except (OSError, ArtefactError):
            return b""
        return data

    def size(self, identifier: str, sequence: int) -> int:
        """Returns the size of the result of `packed` in bytes; 0 without token vectors."""
        place = self._places.get((identifier, sequence))
        return 0 if place is None else place[1]
