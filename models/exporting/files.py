"""Files of checkpoints and bundles: errors, JSON, downloads, and whole directories.

Knows both layouts of the hub's client: `hf download --local-dir` leaves a record of three lines
(revision, checksum, time) for each file, the shared cache names every file by its checksum
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
    """A directory lacks a file, or holds a network that Winnow cannot run in this role."""


class VocabularyError(WinnowError):
    """A vocabulary does not fit its network, or two networks have different ones."""


class ParityError(WinnowError):
    """An exported graph does not compute what the network does."""


UNFAITHFUL = "nothing was written; report it with config.json and the versions of torch and onnx"
"""Advice for a graph that only the authors of Winnow can correct."""


def read_json(path: Path) -> Any:
    """Reads a JSON file.

    Raises:
        CheckpointError: it is missing, or is not JSON.

    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(
            f"cannot read {path}: {error.strerror}; is this the whole download?"
        ) from error
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON: {error}; download it again") from error


def read_json_object(path: Path) -> dict[str, Any]:
    """Reads a JSON object.

    Raises:
        CheckpointError: it is missing, or is not a JSON object.

    """
    found = read_json(path)
    if not isinstance(found, dict):
        raise CheckpointError(
            f"{path} holds a {type(found).__name__}, an object is needed: download it again"
        )
    return found


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """Yields a directory beside `target` that takes its name at the end, or disappears.

    Raises:
        CheckpointError: `target` is there already, and is not an empty directory, or nothing can be
            written beside it.

    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CheckpointError(f"{target} is there already: name another directory, or remove it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise CheckpointError(f"cannot write to {target.parent}: {error.strerror}") from error
    with aside as directory:
        place = Path(directory) / "bundle"
        place.mkdir()
        yield place
        place.rename(target)


_RECORDS = Path(".cache", "huggingface", "download")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def require_as_downloaded(directory: Path, file: Path) -> None:
    """Refuses a file that is not what the hub has; `directory` is the one that was downloaded.

    Raises:
        CheckpointError: it was altered, or did not arrive whole.

    """
    expected = _hub_sha256(directory, file)
    if expected is not None and (found := sha256(file)) != expected:
        raise CheckpointError(
            f"{file} has SHA-256 {found}, the hub's has {expected}: download it again, or, if you "
            "changed it yourself, export a copy without the hub's records"
        )


def _hub_sha256(directory: Path, file: Path) -> str | None:
    """Returns the hub's SHA-256; None without one (small files have another kind)."""
    record = directory / _RECORDS / f"{file.relative_to(directory)}.metadata"
    lines = record.read_text(encoding="utf-8").split() if record.is_file() else []
    blob = file.resolve()
    noted = [*lines[1:2], *([blob.name] if blob.parent.name == "blobs" else [])]
    return next((name for name in noted if _SHA256.fullmatch(name)), None)
