"""Kinds of data that are computed once for each passage and stored beside a shard.

Each kind has three files. On disk, the data of a passage are the scales of its tokens, their levels
of 4 or 8 bits, and a checksum.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal
from zlib import crc32

from winnow.errors import ArtefactError
from winnow.reading.four_bits import BYTES_A_GROUP, count_groups

CHECKSUM_BYTES: Final = 4
_BYTE_BITS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StatesKind:
    """A kind of precomputed data: its name, its files and its format on disk."""

    noun: str
    """Name of the data in messages."""
    model: str
    """Name of the model that computes the data, in messages."""
    command: str
    """Subcommand of `winnow index` that computes the data."""
    stem: str
    """Beginning of the names of its files."""
    format: int
    """Number of the format that this version writes. The manifest of the data has it."""
    bits: Literal[4, 8]
    """Bits of a level."""
    scale_bytes: int
    """Bytes of the scale of a token; 0 if the levels determine it."""
    earlier: "StatesKind | None" = None
    """The kind in the format of older versions, which this version reads, too."""
    verified: bool
    """Whether the whole data is verified when it is opened, and not each passage when it is read.
    """
    loss: str
    """What is different without the data, for messages."""

    @property
    def manifest(self) -> str:
        """Name of the manifest. Without it the data is incomplete."""
        return f"{self.stem}.json"

    @property
    def data(self) -> str:
        """Name of the file with the data of all passages."""
        return f"{self.stem}.bin"

    @property
    def starts_file(self) -> str:
        """Name of the file with the byte offset of each row's data."""
        return f"{self.stem}-starts.npy"

    @property
    def files(self) -> tuple[str, str, str]:
        """Names of the three files, the manifest first."""
        return self.manifest, self.data, self.starts_file

    @property
    def lock(self) -> str:
        """Name of the lock file: one process at a time computes the data."""
        return f"{self.stem}.lock"

    @property
    def partial(self) -> str:
        """Pattern of the names of unfinished data.

        Instead of `*`, the name has the fingerprint of the model and the generation.
        """
        return f"{self.stem}-*.partial"

    @property
    def partial_starts(self) -> str:
        """Pattern of the names of files with byte offsets of unfinished data, as `starts_file`."""
        return f"{self.stem}-*.partial.npy"

    def in_format(self, number: int) -> "StatesKind":
        """Returns this kind in the format with this number, one of `formats`."""
        if self.earlier is None or number == self.format:
            return self
        return self.earlier.in_format(number)

    @property
    def formats(self) -> tuple[int, ...]:
        """The numbers of the formats that this version reads, the oldest first."""
        return (*(self.earlier.formats if self.earlier else ()), self.format)

    def token_bytes(self, width: int) -> int:
        """Returns the bytes of a token of `width` values."""
        levels = width if self.bits == _BYTE_BITS else count_groups(width) * BYTES_A_GROUP
        return self.scale_bytes + levels

    def packed_size(self, tokens: int, width: int) -> int:
        """Returns the bytes of a passage of `tokens` tokens."""
        return tokens * self.token_bytes(width) + CHECKSUM_BYTES

    def count_tokens(self, size: int, width: int) -> int:
        """Returns the tokens of a passage of `size` bytes; the inverse of `packed_size`."""
        return (size - CHECKSUM_BYTES) // self.token_bytes(width)

    def check(self, data: bytes, width: int) -> None:
        """Raises ArtefactError if the data of a passage is damaged."""
        if len(data) < CHECKSUM_BYTES:
            raise ArtefactError(
                f"the {self.noun} of a passage are damaged: they have {len(data)} bytes, which is "
                "less than a checksum"
            )
        body = memoryview(data)[:-CHECKSUM_BYTES]
        if crc32(body) != int.from_bytes(data[-CHECKSUM_BYTES:], "little"):
            raise ArtefactError(
                f"the {self.noun} of a passage are damaged: their checksum does not match"
            )
        if len(body) % self.token_bytes(width):
            raise ArtefactError(
                f"the {self.noun} of a passage are damaged: their width is not {width}"
            )


_STATES_OF_8_BITS: Final = StatesKind(
    noun="states",
    model="reader",
    command="states",
    stem="states",
    format=2,
    bits=8,
    scale_bytes=4,
    verified=False,
    loss="so they are computed for each question",
)
READER_STATES: Final = replace(_STATES_OF_8_BITS, format=3, bits=4, earlier=_STATES_OF_8_BITS)
TOKEN_VECTORS: Final = StatesKind(
    noun="token vectors",
    model="encoder",
    command="token-vectors",
    stem="token-vectors",
    format=2,
    bits=8,
    scale_bytes=0,
    verified=True,
    loss="so passages are ranked without late interaction",
)
KINDS: Final = (READER_STATES, TOKEN_VECTORS)


def kind_of_file(path: str) -> StatesKind | None:
    """Returns the kind of data that a file of this name belongs to; None for other files."""
    name = path.rpartition("/")[2]
    return next((kind for kind in KINDS if name in kind.files), None)


def with_checksum(data: bytes) -> bytes:
    """Returns the data of a passage with its checksum, as on disk."""
    return data + crc32(data).to_bytes(CHECKSUM_BYTES, "little")
