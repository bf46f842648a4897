"""Damages files, as a failing disk does."""

from pathlib import Path


def flip_bit(path: Path, place: int = -1) -> None:
    """Flips a bit of the byte at `place`. A negative place counts from the end of the file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
