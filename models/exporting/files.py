"""Files of checkpoints and bundles: errors, JSON, checks of downloads, and atomic directories.

Supports both layouts of the Hugging Face client. `hf download --local-dir` writes three lines
(revision, checksum, time) for each file. The shared cache names every file by its checksum
(https://huggingface.co/docs/huggingface_hub/guides/manage-cache).
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from winnow.errors import WinnowError
from winnow.files.opened import sha256


class CheckpointError(WinnowError):
    """A directory lacks a file, or contains a network that Winnow cannot run in this role."""


class VocabularyError(WinnowError):
    """A vocabulary does not fit its network, or two networks have different vocabularies."""


class ParityError(WinnowError):
    """An exported graph does not compute the same as its network."""


REPORT_ADVICE = "nothing was written; report it with config.json and the versions of torch and onnx"
"""Advice in errors that only the authors of Winnow can fix."""


def read_json(path: Path) -> Any:
    """Reads a JSON file.

    Raises:
        CheckpointError: the file is missing or is not JSON.

    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(
            f"cannot read {path}: {error.strerror}; download the whole checkpoint"
        ) from error
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON: {error}; download it again") from error


def read_json_object(path: Path) -> dict[str, Any]:
    """Reads a JSON object.

    Raises:
        CheckpointError: the file is missing or is not a JSON object.

    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise CheckpointError(
            f"{path} holds a {type(content).__name__} instead of an object: download it again"
        )
    return content


@contextmanager
def write_atomically(target: Path) -> Iterator[Path]:
    """Yields a temporary directory, and renames it to `target` if the caller succeeds.

    Raises:
        CheckpointError: `target` exists and is not an empty directory, or the temporary directory
            cannot be made.

    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CheckpointError(f"{target} already exists: name another directory, or remove it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise CheckpointError(
            f"cannot write to {target.parent}: {error.strerror}; name another directory"
        ) from error
    with temporary as directory:
        content = Path(directory) / "bundle"
        content.mkdir()
        yield content
        content.rename(target)


_RECORDS = Path(".cache", "huggingface", "download")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def require_as_downloaded(directory: Path, file: Path) -> None:
    """Checks a downloaded file against the SHA-256 that the Hugging Face hub recorded for it.

    Raises:
        CheckpointError: the file is incomplete or was changed.

    """
    expected = _hub_sha256(directory, file)
    if expected is not None and (actual := sha256(file)) != expected:
        raise CheckpointError(
            f"{file} has SHA-256 {actual}, but the hub recorded {expected}: download it again. "
            "If you changed it yourself, export a copy without the hub's records"
        )


def _hub_sha256(directory: Path, file: Path) -> str | None:
    """Returns the SHA-256 that the hub recorded, or None.

    The hub records no SHA-256 for small files, but another checksum.
    """
    record = directory / _RECORDS / f"{file.relative_to(directory)}.metadata"
    lines = record.read_text(encoding="utf-8").split() if record.is_file() else []
    blob = file.resolve()
    checksums = [*lines[1:2], *([blob.name] if blob.parent.name == "blobs" else [])]
    return next((checksum for checksum in checksums if _SHA256.fullmatch(checksum)), None)
