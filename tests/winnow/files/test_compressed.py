"""Compressed files: all of them is read, or they are refused."""

import gzip
import random
from pathlib import Path

import pytest
import zstandard

from winnow.errors import ArtefactError
from winnow.files.compressed import open_bytes

CONTENT = random.Random(1).randbytes(200_000).hex().encode()


def content(path: Path, packed: bytes) -> bytes:
    path.write_bytes(packed)
    with open_bytes(path) as stream:
        return b"".join(stream)


@pytest.mark.parametrize(
    ("name", "pack"), [("p.gz", gzip.compress), ("p.zst", zstandard.ZstdCompressor().compress)]
)
@pytest.mark.parametrize("keep", [0.5, 0.999])
def test_a_file_that_was_cut_off_is_refused(
    tmp_path: Path, name: str, pack: object, keep: float
) -> None:
    packed = pack(CONTENT)  # type: ignore[operator]
    with pytest.raises(ArtefactError, match="cannot read"):
        content(tmp_path / name, packed[: int(keep * len(packed))])


@pytest.mark.parametrize(
    ("name", "pack"), [("p.gz", gzip.compress), ("p.zst", zstandard.ZstdCompressor().compress)]
)
def test_files_that_were_packed_one_by_one_and_joined_are_read_to_the_end(
    tmp_path: Path, name: str, pack: object
) -> None:
    parts = [CONTENT, b"", b"the end"]
    packed = b"".join(map(pack, parts))  # type: ignore[call-overload]
    assert content(tmp_path / name, packed) == CONTENT + b"the end"


@pytest.mark.parametrize("name", ["p.gz", "p.zst"])
def test_what_is_not_packed_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArtefactError, match="cannot read"):
        content(tmp_path / name, b"id\ttext\ttitle\n")


def test_a_flipped_bit_of_packed_data_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"some text " * 5000))
    packed[14] ^= 0b111
    with pytest.raises(ArtefactError, match="cannot read"):
        content(tmp_path / "p.gz", bytes(packed))
